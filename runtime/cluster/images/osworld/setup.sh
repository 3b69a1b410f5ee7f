set -eu
# What OSWorld's virtual machine is beside its packages: names, defaults, and a home in which every application has run once.
echo user:password | chpasswd
for name in google-chrome google-chrome-stable chromium-browser; do ln -sf /opt/osworld/google-chrome /usr/local/bin/$name; done
# The overlay's files may have lost their executable bits on the way here.
printf '#!/bin/sh\nexec /bin/sh /opt/osworld/sudo "$@"\n' > /usr/local/bin/sudo
chmod 755 /usr/local/bin/sudo

# GNOME's defaults where they move, ask or differ from OSWorld's.
cat > /usr/share/glib-2.0/schemas/90_osworld.gschema.override <<'X'
[org.gnome.desktop.interface]
cursor-blink=false
enable-animations=false
toolkit-accessibility=true
[org.gnome.nautilus.preferences]
show-create-link=true
X
glib-compile-schemas /usr/share/glib-2.0/schemas
sed -i 's/^Logo=1/Logo=0/' /etc/libreoffice/sofficerc

# Chromium is started under OSWorld's name for it only: without what that name adds it does not start here.
sed -e 's#/usr/bin/chromium#/usr/local/bin/google-chrome#g' -e 's/^Name=Chromium.*/Name=Google Chrome/' /usr/share/applications/chromium.desktop > /usr/share/applications/google-chrome.desktop
rm /usr/share/applications/chromium.desktop

# Videos: as in OSWorld not VLC, which a task asks for (mpv in place of Totem, which needs OpenGL).
cat > /usr/share/applications/mimeapps.list <<'X'
[Default Applications]
inode/directory=org.gnome.Nautilus.desktop
text/plain=org.gnome.gedit.desktop
text/html=google-chrome.desktop
x-scheme-handler/http=google-chrome.desktop
x-scheme-handler/https=google-chrome.desktop
application/pdf=org.gnome.Evince.desktop
image/png=org.gnome.eog.desktop
image/jpeg=org.gnome.eog.desktop
audio/mpeg=vlc.desktop
application/vnd.openxmlformats-officedocument.spreadsheetml.sheet=libreoffice-calc.desktop
application/vnd.openxmlformats-officedocument.wordprocessingml.document=libreoffice-writer.desktop
application/vnd.openxmlformats-officedocument.presentationml.presentation=libreoffice-impress.desktop
X

grep '^MimeType=' /usr/share/applications/vlc.desktop | tr '=;' '\n' | grep '^video/' | sed 's/$/=mpv.desktop/' >> /usr/share/applications/mimeapps.list

home=/home/user
mkdir -p $home/.config/libreoffice/4/user $home/.config/vlc $home/.config/gtk-3.0 $home/.config/GIMP/2.10 $home/.thunderbird/osworld.default \
  $home/Desktop $home/Documents $home/Downloads $home/Music $home/Pictures $home/Public $home/Templates $home/Videos
cp /dev/null $home/.config/user-dirs.dirs
for dir in Desktop Documents Downloads Music Pictures Public Templates Videos; do
  key=$(echo $dir | tr a-z A-Z); [ $key = DOWNLOADS ] && key=DOWNLOAD; [ $key = PUBLIC ] && key=PUBLICSHARE
  echo "XDG_${key}_DIR=\"\$HOME/$dir\"" >> $home/.config/user-dirs.dirs
done
office() { echo "<item oor:path=\"/org.openoffice.$1\"><prop oor:name=\"$2\" oor:op=\"fuse\"><value>$3</value></prop></item>"; }
{
  echo '<?xml version="1.0" encoding="UTF-8"?>'
  echo '<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
  for key in FirstRun ShowTipOfTheDay CrashReport; do office Office.Common/Misc $key false; done
  office Setup/Product ooSetupLastVersion 7.4
  for key in LastTimeDonateShown LastTimeGetInvolvedShown; do office Setup/Product $key 4102444800; done
  for key in ooSetupInstCompleted MigrationCompleted; do office Setup/Office $key true; done
  office Setup/Office OfficeRestartInProgress false
  office Setup/Office LastCompatibilityCheckID '40(Build:2)'
  office Setup/L10N ooLocale en-US
  office Office.Recovery/AutoSave Enabled false
  office Office.Recovery/RecoveryInfo Enabled false
  office Office.Common/Save/Document WarnAlienFormat false
  office Office.Impress/Misc/Start EnableSdremote false
  office "Setup/Office/Factories/org.openoffice.Setup:Factory['com.sun.star.text.TextDocument']" ooSetupFactoryDefaultFilter 'MS Word 2007 XML'
  office "Setup/Office/Factories/org.openoffice.Setup:Factory['com.sun.star.sheet.SpreadsheetDocument']" ooSetupFactoryDefaultFilter 'Calc MS Excel 2007 XML'
  office "Setup/Office/Factories/org.openoffice.Setup:Factory['com.sun.star.presentation.PresentationDocument']" ooSetupFactoryDefaultFilter 'Impress MS PowerPoint 2007 XML'
  echo '</oor:items>'
} > $home/.config/libreoffice/4/user/registrymodifications.xcu
# What GIMP keeps at its end is judged (its docks, its theme): only its look for updates is off.
echo '(check-updates no)' > $home/.config/GIMP/2.10/gimprc
cat > $home/.config/vlc/vlcrc <<'X'
[qt]
qt-privacy-ask=0
qt-updates-notif=0
qt-icon-change=0
qt-system-tray=0
[lua]
http-password=password
[core]
metadata-network-access=0
extraintf=http
http-host=127.0.0.1
http-port=8080
aout=adummy
X
printf '[Settings]\ngtk-cursor-blink=0\ngtk-enable-animations=0\n' > $home/.config/gtk-3.0/settings.ini
echo 'gtk-cursor-blink = 0' > $home/.gtkrc-2.0
printf '[General]\nStartWithLastProfile=1\nVersion=2\n\n[Profile0]\nName=default\nIsRelative=1\nPath=osworld.default\nDefault=1\n' > $home/.thunderbird/profiles.ini
{
  pref() { echo "user_pref(\"$1\", $2);"; }
  for name in mail.provider.suppress_dialog_on_startup mail.spotlight.firstRunDone mail.warnOnSendAllKeys; do pref $name true; done
  pref mail.rights.version 1
  for name in mailnews.start_page.enabled datareporting.policy.dataSubmissionEnabled mail.shell.checkDefaultClient mail.server.default.check_new_mail \
    mail.server.default.login_at_startup app.update.enabled; do pref $name false; done
  pref ui.caretBlinkTime 0
  pref ui.prefersReducedMotion 1
} > $home/.thunderbird/osworld.default/user.js
chown -R 1000:1000 $home

# Each application runs once: what it makes for itself on a first start is most of what that start takes.
cat > /tmp/first-run.sh <<'X'
export HOME=/home/user USER=user DISPLAY=:97 LANG=C.UTF-8 XDG_RUNTIME_DIR=/tmp/first-run SAL_USE_VCLPLUGIN=gtk3 MOZ_LEGACY_PROFILES=1 NO_AT_BRIDGE=1
mkdir -p -m 700 $XDG_RUNTIME_DIR
cd $HOME
# A failure leaves nothing running: there may be no namespace that ends with this.
trap 'kill -9 $(jobs -p) 2> /dev/null' EXIT
Xvfb :97 -screen 0 1920x1080x24 -nolisten tcp -extension GLX > /dev/null 2>&1 &
x=$!
for n in $(seq 100); do [ -S /tmp/.X11-unix/X97 ] && break; sleep 0.1; done
jwm > /dev/null 2>&1 &
# A window with this in its title is closed as a person would, so that the application saves what it knows.
once() {
  title=$1; shift
  "$@" > /dev/null 2>&1 &
  app=$!
  for n in $(seq 1200); do wmctrl -l | grep -q "$title" && break; sleep 0.1; done
  # An application without its profile would be slow and ask questions on every desktop.
  wmctrl -l | grep -q "$title" || { echo "first run of $1: no window with \"$title\" in its title" >&2; exit 1; }
  sleep 4
  wmctrl -c "$title" || true
  for n in $(seq 100); do kill -0 $app 2> /dev/null || break; sleep 0.1; done
  kill -9 $app 2> /dev/null || true
  echo "first run of $1: done"
}
once 'LibreOffice Writer' soffice --norestore --nologo --writer
once 'LibreOffice Calc' soffice --norestore --nologo --calc
once 'LibreOffice Impress' soffice --norestore --nologo --impress
once 'GNU Image' gimp --no-splash
once 'Chromium' /opt/osworld/google-chrome about:blank
once 'Thunderbird' thunderbird
once 'VLC' vlc
kill $x
X
mkdir -p /opt/osworld
cat > /opt/osworld/google-chrome <<'X'
#!/bin/sh
# Chromium under the name that OSWorld's tasks use, with the profile where their getters look. Its own sandbox is made of namespaces:
# a desktop with a network gets them; one without has nothing to be protected from, and gets none.
sandbox=--no-sandbox
tail -n +3 /proc/net/dev | grep -qv '^ *lo:' && unshare -U true 2> /dev/null && sandbox=
exec /usr/bin/chromium --user-data-dir="$HOME/.config/google-chrome" $sandbox --test-type --no-first-run --no-default-browser-check \
  --password-store=basic --disable-component-update --disable-background-networking --disable-sync --disable-search-engine-choice-screen \
  --hide-crash-restore-bubble --start-maximized --force-device-scale-factor=1 --disable-gpu "$@"
X
chmod 755 /opt/osworld/google-chrome
setpriv --reuid 1000 --regid 1000 --clear-groups sh /tmp/first-run.sh
rm -rf /tmp/first-run /tmp/first-run.sh /tmp/.X97-lock /tmp/.X11-unix/X97 /tmp/OSL_* /tmp/gimp
(cd $home && rm -rf .cache/thumbnails .cache/chromium .cache/google-chrome .cache/thunderbird .cache/mesa_shader_cache .local/share/recently-used.xbel \
  .config/google-chrome/Singleton* .config/google-chrome/*.pma .config/google-chrome/*/Cache .config/google-chrome/*/'Code Cache' \
  .config/google-chrome/*/GPUCache .config/google-chrome/GrShaderCache .config/google-chrome/ShaderCache .config/google-chrome/BrowserMetrics* \
  .config/google-chrome/component_crx_cache .config/google-chrome/*/DawnGraphiteCache .config/google-chrome/*/DawnWebGPUCache \
  .thunderbird/osworld.default/lock .thunderbird/osworld.default/.parentlock .thunderbird/osworld.default/startupCache .thunderbird/*/crashes .config/libreoffice/4/user/crash .config/libreoffice/4/.lock .dbus thunderbird .config/chromium)
sed -i 's/OfficeRestartInProgress" oor:op="fuse"><value>true/OfficeRestartInProgress" oor:op="fuse"><value>false/' $home/.config/libreoffice/4/user/registrymodifications.xcu
rm -rf /etc/skel
cp -a $home /etc/skel
chown -R root:root /etc/skel
chmod -R a+rX /etc/skel
