#!/bin/sh
# The browser that DART_STUDIO_BROWSER names, behind other sessions by DART_STUDIO_BEHIND.
exec "$(dirname "$0")/../../../scripts/lib/behind.sh" "$DART_STUDIO_BEHIND" "$DART_STUDIO_BROWSER" "$@"
