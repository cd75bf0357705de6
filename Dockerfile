# The program alone, in a small image:
#
#   docker build -t galeras .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" galeras run w.yaml
#
# With your own user, the store and the outputs in the folder are yours.
FROM rust:1.95.0-slim-bookworm AS build
# The toolchain that the image has; rust-toolchain.toml would have it load another one.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist --package galeras && cp target/dist/galeras /galeras

FROM debian:bookworm-slim
# Git fetches repositories from servers, also through ssh; ssh-keygen checks signatures. Certificates
# are for model servers, GitHub and remotes. Debian chooses the versions.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates git openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 galeras && mkdir /work && chown galeras /work
COPY --from=build /galeras /usr/local/bin/galeras
COPY workflows /usr/share/galeras/workflows
USER 1000
WORKDIR /work
ENTRYPOINT ["galeras"]
