"""Write what is made under deploy/ again: `make deploy-files`."""

from pathlib import Path

from kubesched import __version__
from kubesched.live.deploying import deploy_files

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"


def main() -> None:
    for name, text in deploy_files(__version__).items():
        path = DEPLOY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
