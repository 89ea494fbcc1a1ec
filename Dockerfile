# A static binary and nothing else: no shell, no package manager, no root.
ARG GO_VERSION=1.26

FROM golang:${GO_VERSION} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=devel
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.release=${VERSION}" -o /out/engined ./cmd/engined \
 && mkdir -p /out/etc /out/tmp \
 && echo 'engined:x:65532:65532::/:/sbin/nologin' > /out/etc/passwd \
 && chmod 1777 /out/tmp

FROM scratch
COPY --from=build /out/etc/passwd /etc/passwd
COPY --from=build /out/tmp /tmp
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/engined /engined
USER 65532:65532
EXPOSE 7420
# Inside a container loopback reaches nobody. Without keys, a node that listens
# beyond it answers 401 to every call: set ENGINED_KEYS, or ENGINED_INSECURE=true.
ENV ENGINED_LISTEN=0.0.0.0:7420 ENGINED_HEALTH_LISTEN=0.0.0.0:7420 ENGINED_LOG_FORMAT=json
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 CMD ["/engined", "health"]
ENTRYPOINT ["/engined"]
CMD ["serve"]
