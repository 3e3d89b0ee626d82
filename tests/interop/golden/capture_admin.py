"""Makes the calls of admin_calls.txt on a real Pulsar and writes down its answers: capture_admin.py http://HOST:PORT pulsar://HOST:PORT TENANT

The tenant must not exist; what the run makes it deletes again, but for a namespace's system topics. Writes admin_rest.json, one answer a line.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rest_calls  # noqa: E402


def main(web_url, service_url, tenant):
    lines = [json.dumps([line, status, summary], ensure_ascii=False) for line, status, summary, _, _ in rest_calls.Run(web_url, service_url, tenant).all()]
    (HERE / "admin_rest.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(len(lines), "answers")


main(*sys.argv[1:])
