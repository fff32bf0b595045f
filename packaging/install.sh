#!/bin/sh
# Installs liza from this folder: sh install.sh [PREFIX]; default $PREFIX, else ~/.local. Touches nothing else.
set -eu
case "${1:-}" in
-*)
    echo "usage: sh install.sh [PREFIX]; default \$PREFIX, else ~/.local"
    [ "$1" = --help ] || [ "$1" = -h ] || exit 1
    exit 0
    ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:-${PREFIX:-${HOME:?set HOME, or name a folder: sh install.sh PREFIX}/.local}}
mkdir -p "$prefix/bin" "$prefix/share"
cp "$here/bin/liza" "$prefix/bin/.liza.new"
chmod 755 "$prefix/bin/.liza.new"
# A running program keeps its own file.
mv "$prefix/bin/.liza.new" "$prefix/bin/liza"
cp -R "$here/share/." "$prefix/share/"
echo "liza is installed in $prefix/bin"
case ":${PATH:-}:" in
*":$prefix/bin:"*) ;;
*)
    echo "$prefix/bin is not in your PATH; add this line to the profile of your shell (~/.profile, ~/.bashrc, ~/.zshrc):"
    echo "  export PATH=\"$prefix/bin:\$PATH\""
    ;;
esac
