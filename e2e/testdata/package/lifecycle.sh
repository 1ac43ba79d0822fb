# Installs, upgrades, removes and purges the package, as an operator would. It is run
# by bash in a directory with the packages, and gets ROOT, a root directory for dpkg.
# install.sh is the block from the README.
set -eu -o pipefail
trap 'chroot "$ROOT" systemctl stop animalstore; cat "$ROOT/run/journal"' EXIT

fail() {
	echo "FAIL: $*"
	exit 1
}
sudo() {
	if [ "$1" = dpkg ]; then
		shift
		command dpkg --root="$ROOT" "$@"
	else
		chroot "$ROOT" "$@"
	fi
}
serves() { curl -s --fail -o response.txt -H "Authorization: Bearer $KEY" http://127.0.0.1:8080/v1/pets; }

echo "--- first installation"
. ./install.sh >installed.txt
cat installed.txt
[ "$(tail -n 1 installed.txt)" = "[]" ] || fail "the last of the three commands doesn't print []"
serves || fail "no 200"
[ "$(stat -c %a "$ROOT/var/lib/animalstore")" = 700 ] || fail "others can read the data"
[ "$(stat -c %a "$ROOT/etc/animalstore/animalstore.env")" = 640 ] || fail "others can read the settings"
owner=$(stat -c %u "$ROOT/var/lib/animalstore/store.db")
grep -q "^animalstore:x:$owner:" "$ROOT/etc/passwd" || fail "the database doesn't belong to animalstore"
! grep -q ast_live_ "$ROOT/run/journal" || fail "there is a key in the journal"
[ -f "$ROOT/usr/lib/systemd/system/animalstore.socket" ] || fail "the package has no socket unit"
grep -q "keys create" installed.txt || fail "the package doesn't say how to create a key"

echo "--- upgrade"
echo "ANIMALSTORE_ACCESS_LOG=true" >>"$ROOT/etc/animalstore/animalstore.env"
sudo dpkg -i ./new/*.deb </dev/null
grep -q ACCESS_LOG "$ROOT/etc/animalstore/animalstore.env" || fail "the upgrade replaced the settings"
serves || fail "no 200 after the upgrade"
grep -q msg=request "$ROOT/run/journal" || grep -q '"msg":"request"' "$ROOT/run/journal" || fail "the upgrade doesn't restart the service"

echo "--- remove"
sudo dpkg -r animalstore
! serves || fail "the service still runs"
[ ! -e "$ROOT/usr/bin/animalstore" ] || fail "the binary is still there"
[ -f "$ROOT/var/lib/animalstore/store.db" ] || fail "remove deletes data"
grep -q ACCESS_LOG "$ROOT/etc/animalstore/animalstore.env" || fail "remove deletes settings"

echo "--- install again"
sudo dpkg -i ./new/*.deb </dev/null
serves || fail "the key no longer works"

echo "--- purge"
sudo dpkg --purge animalstore
! serves || fail "the service still runs"
[ ! -e "$ROOT/var/lib/animalstore" ] || fail "purge leaves data"
[ ! -e "$ROOT/etc/animalstore" ] || fail "purge leaves settings"
[ ! -L "$ROOT/etc/systemd/system/multi-user.target.wants/animalstore.service" ] || fail "purge leaves a link"
echo "--- done"
