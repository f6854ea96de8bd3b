# Two stages: the first builds one static binary. The second contains that binary, the C libraries it links,
# certificates and time zones, and nothing else: no shell and no package manager.
FROM docker.io/library/swift:6.3-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        ca-certificates libcurl4-openssl-dev libmicrohttpd-dev libpq-dev libsqlite3-dev libssl-dev pkg-config python3 \
        rsync tzdata zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
COPY Package.swift asyncapi.yaml openapi.yaml /context/
COPY .ci/sbom /context/.ci/sbom
# What the binary has in it besides Sources.
COPY Deploy/tables /context/Deploy/tables
COPY Benchmarks/Transport /context/Benchmarks/Transport
COPY Sources /context/Sources
# Package.swift names the test targets, so their folders must exist; they are not built.
COPY Tests /context/Tests
# The build engine keeps /cache between builds, with the fetched packages and the compiled code. rsync compares
# contents and not times, so unchanged files are not compiled again. FoundationNetworking links libcurl; with the
# static Swift libraries, the build must pass that flag itself. lld packs relocations and folds identical functions,
# which saves 3 MB.
RUN --mount=type=cache,id=bellhop,target=/cache,sharing=locked \
    rsync -rl --checksum --delete --exclude=/.build --exclude=/Package.resolved /context/ /cache/bellhop/ \
    && cd /cache/bellhop \
    && build="swift build -c release --product bellhop --static-swift-stdlib -Xswiftc -use-ld=lld \
        -Xlinker -lcurl -Xlinker -s -Xlinker -z -Xlinker pack-relative-relocs -Xlinker --icf=safe" \
    && $build --cache-path /cache/packages \
    && binary="$($build --show-bin-path)/bellhop" \
    && install -D -m 755 "$binary" /image/usr/bin/bellhop \
    && ldd "$binary" | grep -o '/[^ )]*' | sort -u | while read -r library; do \
        mkdir -p "/image$(dirname "$library")" && cp -L "$library" "/image$library" || exit 1; done \
    && mkdir -p /image/usr/share/doc/bellhop \
    && .ci/sbom "$binary" Package.resolved > /image/usr/share/doc/bellhop/bellhop.spdx.json \
    && install -D -m 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
    && mkdir -p /image/usr/share /owned/data && cp -a /usr/share/zoneinfo /image/usr/share/zoneinfo \
    && rm -rf /image/usr/share/zoneinfo/right /image/usr/share/zoneinfo/posix \
    && mkdir -m 1777 /image/tmp \
    && echo 'bellhop:x:65532:65532::/nonexistent:/nonexistent' > /image/etc/passwd \
    && echo 'bellhop:x:65532:' > /image/etc/group

FROM scratch
COPY --from=build /image/ /
# Copied as the content of a folder, so that /data itself gets its owner.
COPY --from=build --chown=65532:65532 /owned/ /
USER 65532:65532
WORKDIR /data
VOLUME /data
ENV BELLHOP_HOST=0.0.0.0 \
    BELLHOP_PORT=8080 \
    BELLHOP_DATABASE=sqlite:/data/bellhop.sqlite
EXPOSE 8080
STOPSIGNAL SIGTERM
# The command reads the address from the settings, so another BELLHOP_PORT needs no change here.
HEALTHCHECK --interval=15s --timeout=5s --start-period=5s --retries=3 CMD ["/usr/bin/bellhop", "health"]
ENTRYPOINT ["/usr/bin/bellhop"]
CMD ["serve"]
