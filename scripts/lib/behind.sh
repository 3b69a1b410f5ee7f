#!/bin/sh
# behind.sh LEVEL COMMAND...: COMMAND, behind the machine's other sessions by LEVEL (1 to 19, as `nice` counts). Linux
# shares the processors among sessions first and among their programs only then, so this wants a session of its own.
level=$1
shift
# Not Linux, or built without it: `nice` alone has to do.
{ echo "$level" > /proc/self/autogroup; } 2> /dev/null
exec nice -n "$level" "$@"
