# Both bases of the Dockerfile for a machine that reaches no registry of images, of Debian's packages (debian.tar, which
# mmdebstrap makes) and of this machine's Node and npm. bases.ts builds them.
FROM scratch AS build
ADD debian.tar /
COPY node /usr/local/bin/node
ADD npm.tgz /usr/local/lib/
RUN ln -s ../lib/package/bin/npm-cli.js /usr/local/bin/npm

# Files of packages and their records, without a shell, as distroless images have them.
FROM build AS packages
WORKDIR /runtime
RUN mkdir -p home/nonroot usr/lib64 var/lib/dpkg/status.d && \
    for name in base-files ca-certificates libc6 libgcc-s1 libstdc++6; do \
      dpkg-query --status "$name" >"var/lib/dpkg/status.d/$name" && \
      dpkg-query --listfiles "$name" | tar --create --no-recursion --files-from - 2>/dev/null | tar --extract || exit 1; \
    done && \
    cp /etc/ssl/certs/ca-certificates.crt etc/ssl/certs/ && \
    echo 'hosts: files dns' >etc/nsswitch.conf && \
    echo 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' >etc/passwd && \
    echo 'nonroot:x:65532:' >etc/group

FROM scratch AS runtime
COPY --from=packages /runtime /
