#!/bin/sh
# Make ./configure out of configure.ac. A release tarball has it and does not need this.
set -eu
cd "$(dirname "$0")"

missing=
for tool in autoconf automake aclocal; do
	command -v "$tool" > /dev/null || missing="$missing $tool"
done
if [ -n "$missing" ]; then
	echo "autogen.sh: not found:$missing" >&2
	echo "autogen.sh: Debian, Ubuntu: apt-get install autoconf automake" >&2
	echo "autogen.sh: Fedora, RHEL:   dnf install autoconf automake" >&2
	echo "autogen.sh: Alpine:         apk add autoconf automake" >&2
	exit 1
fi
mkdir -p build-aux
exec autoreconf --force --install
