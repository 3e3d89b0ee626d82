# lib.sh - what the scripts share: quiet steps with a log each. Sourced from the project's top folder.
logs=build/log
mkdir -p "$logs"

# step NAME WHAT COMMAND...: runs the command into a log of its own; on failure shows the log's end and stops.
step()
{
    step_name=$1
    echo "== $2"
    shift 2
    if ! "$@" >"$logs/$step_name.log" 2>&1 </dev/null; then
        tail -n 60 "$logs/$step_name.log" >&2
        echo "$step_name failed; the whole log: $logs/$step_name.log" >&2
        exit 1
    fi
}

# preset NAME: configures (always: a folder may be new) and builds one preset.
preset()
{
    cmake --preset "$1" && cmake --build --preset "$1"
}

# venv: the Python side of the interop tests in build/venv, made again when its requirements change.
# The commands are chained: `set -e` does not hold inside a function whose status is looked at.
venv()
{
    wanted=tests/interop/requirements.txt
    cmp -s "$wanted" build/venv/requirements.txt && return 0
    rm -rf build/venv &&
        python3 -m venv build/venv &&
        build/venv/bin/pip install --quiet --disable-pip-version-check -r "$wanted" &&
        cp "$wanted" build/venv/
}
