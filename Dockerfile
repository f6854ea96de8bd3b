# Two stages: the first builds one static binary, the second holds that binary, the C libraries it links, certificates and
# time zones, and nothing else: no shell, no package manager.
FROM docker.io/library/swift:6.3-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        ca-certificates libcurl4-openssl-dev libmicrohttpd-dev libpq-dev libsqlite3-dev pkg-config tzdata \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Package.swift ./
RUN swift package resolve
COPY openapi.yaml ./
COPY Sources Sources
COPY Tests Tests
COPY Benchmarks/Simulation Benchmarks/Simulation
# FoundationNetworking links libcurl; in the static form of the Swift libraries that is left to the linker's caller.
RUN swift build -c release --product bellhop --static-swift-stdlib -Xlinker -lcurl -Xlinker -s
RUN binary="$(swift build -c release --product bellhop --static-swift-stdlib -Xlinker -lcurl -Xlinker -s --show-bin-path)/bellhop" \
    && install -D -m 755 "$binary" /image/usr/bin/bellhop \
    && ldd "$binary" | grep -o '/[^ )]*' | sort -u | while read -r library; do \
        mkdir -p "/image$(dirname "$library")" && cp -L "$library" "/image$library" || exit 1; done \
    && install -D -m 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
    && mkdir -p /image/usr/share /owned/data && cp -a /usr/share/zoneinfo /image/usr/share/zoneinfo \
    && rm -rf /image/usr/share/zoneinfo/right /image/usr/share/zoneinfo/posix \
    && mkdir -m 1777 /image/tmp \
    && echo 'bellhop:x:65532:65532::/data:/nonexistent' > /image/etc/passwd \
    && echo 'bellhop:x:65532:' > /image/etc/group

FROM scratch
COPY --from=build /image/ /
# As the content of a folder, so that /data itself gets its owner.
COPY --from=build --chown=65532:65532 /owned/ /
USER 65532:65532
WORKDIR /data
VOLUME /data
ENV BELLHOP_HOST=0.0.0.0 \
    BELLHOP_PORT=8080 \
    BELLHOP_DATABASE=sqlite:/data/bellhop.sqlite
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=5s --retries=3 \
    CMD ["/usr/bin/bellhop", "check", "--url", "http://127.0.0.1:8080/healthz"]
ENTRYPOINT ["/usr/bin/bellhop"]
CMD ["serve"]
