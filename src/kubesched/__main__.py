"""`python -m kubesched`: the same as `kubesched`."""

from kubesched.cli.main import main

if __name__ == "__main__":
    main()
