import { edges, indexOf, lineageOf, type SessionLike } from "./lineage.ts";

/** A session in a diagram. */
export type DrawnSession = SessionLike & { readonly cost?: number | null };

const LABEL_CHARACTERS_MAX = 80;

interface DiagramNode {
  /** A generated name: a session id could contain syntax of the diagram's language. */
  readonly name: string;
  readonly label: readonly string[];
  /** True for a session that is only named as a parent, and is not among the sessions. */
  readonly missing: boolean;
}

/** The sessions as a Mermaid flowchart, with parents above their children. */
export function toMermaid(sessions: Iterable<DrawnSession>): string {
  const { nodes, arrows } = drawing(sessions, "toMermaid");
  const lines = ["flowchart TD"];
  for (const { name, label, missing } of nodes) {
    lines.push(`  ${name}["${label.map(escapeMermaid).join("<br/>")}"]${missing ? ":::missing" : ""}`);
  }
  for (const [parent, child] of arrows) lines.push(`  ${parent} --> ${child}`);
  lines.push("  classDef missing stroke-dasharray: 4");
  return `${lines.join("\n")}\n`;
}

/** The sessions as a graph in the DOT language, with parents above their children. */
export function toDot(sessions: Iterable<DrawnSession>): string {
  const { nodes, arrows } = drawing(sessions, "toDot");
  const lines = ["digraph lineage {", "  node [shape=box];"];
  for (const { name, label, missing } of nodes) {
    lines.push(`  ${name} [label="${label.map(escapeDot).join("\\n")}"${missing ? ", style=dashed" : ""}];`);
  }
  for (const [parent, child] of arrows) lines.push(`  ${parent} -> ${child};`);
  lines.push("}");
  return `${lines.join("\n")}\n`;
}

function drawing(
  sessions: Iterable<DrawnSession>,
  call: string,
): {
  readonly nodes: readonly DiagramNode[];
  readonly arrows: readonly (readonly [string, string])[];
} {
  const byId = indexOf(sessions, call);
  const nodes = new Map<string, DiagramNode>();
  for (const session of byId.values()) {
    nodes.set(session.id, { name: `s${nodes.size}`, label: labelOf(session), missing: false });
  }
  const arrows: [string, string][] = [];
  for (const { parent, child } of edges(byId.values())) {
    const above = nodes.get(parent) ?? { name: `s${nodes.size}`, label: ["not given", parent], missing: true };
    nodes.set(parent, above);
    arrows.push([above.name, (nodes.get(child) as DiagramNode).name]);
  }
  return { nodes: [...nodes.values()], arrows };
}

function labelOf(session: DrawnSession): string[] {
  const { kind, operator } = lineageOf(session);
  const cost = session.cost ?? null;
  return [`${kind} (${operator})`, session.id, ...(cost === null ? [] : [`cost ${Number(cost.toPrecision(6))}`])];
}

/** One line of at most 80 characters, with invisible characters replaced. */
function plain(text: string): string {
  const characters = [...text.slice(0, 2 * (LABEL_CHARACTERS_MAX + 1))];
  const cut =
    characters.length > LABEL_CHARACTERS_MAX ? [...characters.slice(0, LABEL_CHARACTERS_MAX), "…"] : characters;
  return cut.join("").replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");
}

/** Encodes all characters but letters, digits and a few marks: Mermaid parses keywords and symbols within quotes, too. */
function escapeMermaid(text: string): string {
  return plain(text).replace(/[^\p{L}\p{M}\p{N} ._()-]/gu, (character) => `#${character.codePointAt(0)};`);
}

function escapeDot(text: string): string {
  return plain(text).replace(/&/g, "&amp;").replace(/[\\"]/g, "\\$&");
}
