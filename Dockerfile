# The program alone, in a small image: docker build -t galeras . && docker run --rm -v "$PWD:/work" galeras run w.yaml
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --locked --profile dist --package galeras && cp target/dist/galeras /galeras

FROM debian:bookworm-slim
# Certificates for model servers, GitHub and remotes.
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home galeras && mkdir /work && chown galeras /work
COPY --from=build /galeras /usr/local/bin/galeras
COPY workflows /usr/share/galeras/workflows
USER galeras
WORKDIR /work
ENTRYPOINT ["galeras"]
