import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toDot, toMermaid } from "./lineage-diagram.ts";
import type { SessionLike } from "./lineage.ts";
import { Session } from "../value/session.ts";
import { Transcript } from "../value/transcript.ts";

const named = (id: string, operator: string, parents: readonly string[] = []): SessionLike => ({
  id,
  lineage: { parents, operator, kind: "op_fork", extras: [] },
});

const root = Session.of(Transcript.empty, { id: "root", cost: 0.1 + 0.2 });
const fork = Session.of(Transcript.empty, { id: "fork-1", lineage: root.fork().lineage });
const orphan = named("orphan", "merge", ["fork-1", "lost"]);

describe("a diagram", () => {
  test("in Mermaid shows kinds, operators, costs, and parents that are not given", () => {
    expect(toMermaid([root, fork, orphan])).toBe(
      [
        "flowchart TD",
        '  s0["unknown (implicit)<br/>root<br/>cost 0.3"]',
        '  s1["op_fork (fork)<br/>fork-1"]',
        '  s2["op_fork (merge)<br/>orphan"]',
        '  s3["not given<br/>lost"]:::missing',
        "  s0 --> s1",
        "  s1 --> s2",
        "  s3 --> s2",
        "  classDef missing stroke-dasharray: 4",
        "",
      ].join("\n"),
    );
  });

  test("in DOT shows the same", () => {
    expect(toDot([root, fork, orphan])).toBe(
      [
        "digraph lineage {",
        "  node [shape=box];",
        '  s0 [label="unknown (implicit)\\nroot\\ncost 0.3"];',
        '  s1 [label="op_fork (fork)\\nfork-1"];',
        '  s2 [label="op_fork (merge)\\norphan"];',
        '  s3 [label="not given\\nlost", style=dashed];',
        "  s0 -> s1;",
        "  s1 -> s2;",
        "  s3 -> s2;",
        "}",
        "",
      ].join("\n"),
    );
  });

  test("of nothing is still a diagram", () => {
    expect(toMermaid([])).toBe("flowchart TD\n  classDef missing stroke-dasharray: 4\n");
    expect(toDot([])).toBe("digraph lineage {\n  node [shape=box];\n}\n");
  });

  const hostile = fc.oneof(
    fc.string({ unit: "binary", maxLength: 120 }),
    fc.string({
      unit: fc.constantFrom(
        '"',
        "\\",
        "]",
        "\n",
        "\r",
        ";",
        "#",
        "%",
        "{",
        "}",
        "<",
        ">",
        "`",
        "&",
        ":",
        "-",
        "l",
        "\u2028",
        "\ud800",
        "\u0000",
      ),
    }),
    fc.constantFrom(
      '"]; click s0 "javascript:alert(1)"',
      '"]\nend',
      "%%{init: {}}%%",
      "<script>",
      '\\" ]; x -> y',
      "&quot;]",
      "style s0 fill:#fff;",
      "a\\",
    ),
  );

  test("in Mermaid cannot be broken by an id or a name", () => {
    fc.assert(
      fc.property(hostile, hostile, hostile, (id, operator, parent) => {
        const lines = toMermaid([named(id, operator, [parent])])
          .trimEnd()
          .split("\n");
        const self = parent === id;
        expect(lines).toHaveLength(self ? 4 : 5);
        // Letters and digits are unchanged; everything else in a label is encoded.
        const text = "(?:[\\p{L}\\p{M}\\p{N} ._()-]|#\\d+;)*";
        expect(lines[1]).toMatch(new RegExp(`^  s0\\["op_fork \\(${text}\\)<br/>${text}"\\]$`, "u"));
        if (!self) expect(lines[2]).toMatch(new RegExp(`^  s1\\["not given<br/>${text}"\\]:::missing$`, "u"));
        expect(lines.slice(self ? 2 : 3)).toEqual([
          self ? "  s0 --> s0" : "  s1 --> s0",
          "  classDef missing stroke-dasharray: 4",
        ]);
      }),
      { numRuns: 300 },
    );
  });

  test("in DOT cannot be broken by an id or a name", () => {
    fc.assert(
      fc.property(hostile, hostile, (id, operator) => {
        const lines = toDot([named(id, operator)])
          .trimEnd()
          .split("\n");
        expect(lines).toHaveLength(4);
        // A quoted text of DOT ends at the first quote that no backslash precedes.
        expect(lines[2]).toMatch(/^ {2}s0 \[label="(?:[^"\\]|\\["\\n])*"\];$/u);
        expect(lines[2]).not.toMatch(/[\p{C}\u2028]/u);
      }),
      { numRuns: 300 },
    );
  });

  test("shows a hostile name as plain text, cut if it is long", () => {
    expect(toMermaid([named("a", '"#')])).toContain('["op_fork (#34;#35;)<br/>a"]');
    expect(toDot([named("a", '"\\&n')])).toContain('"op_fork (\\"\\\\&amp;n)\\na"');
    expect(toDot([named("x".repeat(500), "o")])).toContain(`${"x".repeat(80)}…"`);
    expect(toDot([named("👍".repeat(500), "o")])).toContain(`${"👍".repeat(80)}…"`);
  });
});
