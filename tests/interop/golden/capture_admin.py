"""Makes the calls of a list (admin_calls.txt, ...) on a real Pulsar and writes down its answers: capture_admin.py LIST http://HOST:PORT pulsar://HOST:PORT TENANT

The tenant must not exist; what the run makes it deletes again, but for a namespace's system topics. Writes the list's answers (rest_calls.py: LISTS), one a line.
For admin_calls_namespaces.txt it must be a fresh broker and the tenant recorded2: bundles are known by the hashes of names.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rest_calls  # noqa: E402


def main(name, web_url, service_url, tenant):
    lines = [json.dumps([line, status, summary], ensure_ascii=False) for line, status, summary, _, _ in rest_calls.Run(web_url, service_url, tenant).all(name)]
    (HERE / rest_calls.LISTS[name]).write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(len(lines), "answers")


main(*sys.argv[1:])
