#!/bin/sh
# Runs inside the new system, once its packages are there and before the overlay is laid over it:
# in the Dockerfile's RUN and in mmdebstrap's customize hook, so that both forms of the desktop are the same.
set -eu
groupadd -g 1000 user
useradd -M -d /home/user -s /bin/bash -u 1000 -g 1000 user
groupadd -g 1001 xserver
useradd -M -d /nonexistent -s /usr/sbin/nologin -u 1001 -g 1001 xserver
# A home is copied from /etc/skel at every reset; the one here is for a container started by hand.
mkdir -p /etc/skel/Desktop /etc/skel/Documents /etc/skel/Downloads
rm -f /etc/skel/.bash_logout
rm -rf /home/user
cp -a /etc/skel /home/user
chown -R 1000:1000 /home/user
mkdir -p /tmp/.X11-unix /opt/dart /run/dart
chmod 1777 /tmp/.X11-unix
# xterm without xrdb (x11-xserver-utils would pull in a compiler): its look is set where it reads its defaults.
cat >> /etc/X11/app-defaults/XTerm <<'X'

*faceName: DejaVu Sans Mono
*faceSize: 10
*cursorBlink: false
*multiClickTime: 200
*scrollBar: false
*saveLines: 1000
*background: white
*foreground: black
*vt100.geometry: 66x16
X
# Without a valid font cache every start rebuilds it (+100 ms): folders get a fixed date, then the cache is made.
find /usr/share/fonts -type d -exec touch -d @1700000000 {} +
fc-cache -f
# At every start the X server has its keyboard compiled, for 17 ms of each reset. That one is compiled here, and handed out
# to who asks for it in the same words; everything else is compiled as ever.
dpkg-divert --quiet --rename --divert /usr/bin/xkbcomp.real --add /usr/bin/xkbcomp
cat > /usr/share/X11/server.xkb <<'X'
xkb_keymap "default" {
    xkb_keycodes             { include "evdev+aliases(qwerty)" };
    xkb_types                { include "complete" };
    xkb_compatibility        { include "complete" };
    xkb_symbols              { include "pc+us+inet(evdev)" };
    xkb_geometry             { include "pc(pc105)" };
};
X
xkbcomp.real -w 0 -xkm /usr/share/X11/server.xkb /usr/share/X11/server.xkm
cat > /usr/bin/xkbcomp <<'X'
#!/bin/sh
case "$*" in '-w 1 -R/usr/share/X11/xkb -xkm - '*) ;; *) exec xkbcomp.real "$@" ;; esac
end='
'
read_all() { text=; while IFS= read -r line; do text="$text$line$end"; done; }
read_all
asked=$text
read_all < /usr/share/X11/server.xkb
for out; do :; done
[ "$asked" = "$text" ] && exec cp /usr/share/X11/server.xkm "$out"
printf '%s' "$asked" | xkbcomp.real "$@"
X
chmod 755 /usr/bin/xkbcomp
# Caches of icons and mime types are made by package triggers; what is left over from the installation goes.
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/log/* /var/cache/ldconfig/aux-cache /tmp/dart-build
rm -f /etc/apt/apt.conf.d/99mmdebstrap /etc/dpkg/dpkg.cfg.d/99mmdebstrap
