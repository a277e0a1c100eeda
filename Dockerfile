# The scheduler as an image: nothing but Python, what it needs, and itself.  It runs as nobody and writes nothing.
#
#     docker build -t kubesched .
#
# Every package is the one requirements.lock names, by its hash; what only tests need is left out.

ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS build
WORKDIR /build
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY tools/runtime_lock.py tools/
RUN python tools/runtime_lock.py > runtime.lock \
 && python -m venv /kubesched \
 && /kubesched/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r runtime.lock
COPY src/ src/
RUN python tools/runtime_lock.py setuptools > build.lock \
 && pip install --no-cache-dir --require-hashes --only-binary :all: -r build.lock \
 && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /kubesched/bin/pip install --no-cache-dir --no-deps /wheels/*.whl \
 && /kubesched/bin/python -m compileall -q /kubesched/lib \
 && /kubesched/bin/pip uninstall --yes --quiet pip

FROM ${PYTHON}
COPY --from=build /kubesched /kubesched
ENV PATH=/kubesched/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /
EXPOSE 10259
ENTRYPOINT ["kubesched"]
CMD ["run"]
