// Errors carry the findings of the library, one record per finding.

const LINE = /^(?:(.*?): )?(error|warning|note): (.*?)(?: \[([A-Z]+-\d+)\])?$/;

/** Parses lines printed by the program; "hint:" lines belong to the finding before them. */
export function parseDiagnostics(text) {
  const list = [];
  for (const line of text.split("\n")) {
    const m = LINE.exec(line);
    if (m) {
      const d = { severity: m[2], message: m[3] };
      if (m[1] && m[1] !== "onx") d.where = m[1];
      if (m[4]) d.rule = m[4];
      list.push(d);
    } else if (line.startsWith("hint: ") && list.length) {
      list[list.length - 1].hint = line.slice("hint: ".length);
    }
  }
  return list;
}

export class OnxError extends Error {
  constructor(message, diagnostics = []) {
    super(message);
    this.name = "OnxError";
    this.diagnostics = diagnostics;
  }

  /** Makes an error from printed text; `otherwise` is the message if the text names no error. */
  static fromText(text, otherwise) {
    const diagnostics = parseDiagnostics(text);
    const first = diagnostics.find((d) => d.severity === "error");
    const place = first?.where ? `${first.where}: ` : "";
    return new OnxError(first ? place + first.message : text.trim() || otherwise, diagnostics);
  }
}
