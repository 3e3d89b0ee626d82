"""tablegen.py - what the generators of one header and one page of tables have in common."""
import pathlib
import sys


def run(about, findings, page_path, page, header_name, header):
    """`--docs` writes the page anew; SPEC OUT-FOLDER writes the header, if it is another one.

    findings: what is wrong with the table; page(text): the page made anew; header(path of SPEC): the header's text.
    """
    if findings:
        sys.exit("\n".join(findings))
    if sys.argv[1:] == ["--docs"]:
        page_path.write_text(page(page_path.read_text()))
    elif len(sys.argv) == 3:
        out = pathlib.Path(sys.argv[2]) / header_name
        text = header(pathlib.Path(sys.argv[1]))
        if not out.exists() or out.read_text() != text:
            out.write_text(text)
    else:
        sys.exit(about)
