# Runs a server and ends it once nobody holds the other end of our input, whatever became of them.
# Arguments: signal to end it with, its folder, its log, and its command.

born() {
    read -r line <"/proc/$1/stat" || return
    set -- ${line##*) }
    [ "$1" = Z ] || echo "${20}"
} 2>/dev/null

is_running() { [ -n "$born" ] && [ "$(born "$pid")" = "$born" ]; }

signal=$1 folder=$2 log=$3
shift 3
"$@" </dev/null >>"$log" 2>&1 &
pid=$!
born=$(born "$pid")
echo "$pid ${born:-0}"
exec >/dev/null 2>&1
cd /

while read -r order; do
    [ "$order" = leave ] && exit
done

is_running && kill -s "$signal" "$pid"
tries=50
while is_running && [ "$tries" -gt 0 ]; do
    sleep 0.1
    tries=$((tries - 1))
done
is_running && kill -s KILL "$pid"
wait
rm -rf -- "$folder"
rmdir -- "${folder%/*}"
