"""Gives the command lines of pulsar_admin_calls.txt to pulsar-admin on a real Pulsar and writes down what it says:

capture_pulsar_admin.py JARS http://HOST:PORT pulsar://HOST:PORT TENANT

JARS is a folder for the tool's jars. The tenant must not exist; what the run makes it deletes again, but for a namespace. Writes pulsar_admin.json, one answer a line.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import pulsar_admin  # noqa: E402


def main(jars, web_url, service_url, tenant):
    with pulsar_admin.Run(pulsar_admin.fetch_jars(pathlib.Path(jars)), web_url, service_url, tenant, pause=0.3) as run:
        lines = [json.dumps(answer, ensure_ascii=False) for _, answer, _ in run.all()]
    (HERE / "pulsar_admin.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(len(lines), "answers")


main(*sys.argv[1:])
