"""Writes down what the figures of a real Pulsar look like: capture_stats.py http://HOST:PORT pulsar://HOST:PORT NAMESPACE (it must be there, without topics). Takes a minute."""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import stats_shapes  # noqa: E402

found = stats_shapes.Figures(*sys.argv[1:]).all()
text = ",\n".join(json.dumps(one) for one in found).replace(sys.argv[3], "NAMESPACE")
(HERE / "stats_shapes.json").write_text(f"[\n{text}\n]\n")
print(len(found), "shapes")
