import { SessionError } from "../session/errors.ts";
import { type Entry, entryCharacters, isNode } from "../session/log/entry.ts";
import { buildTree, type TreeNode } from "../session/log/entry-tree.ts";
import { textOf } from "../session/message.ts";
import { cutText } from "../internal/cut-text.ts";
import { type Answer, composeAnswer, PREFACE } from "./answer.ts";
import { originOf, type SessionScope } from "./session-scope.ts";

const PREVIEW_CHARACTERS = 80;
const INDENT_MAX = 10;
/** About how many characters of nodes are kept while the tree is read. */
const TREE_CHARACTERS_MAX = 64 * 1024 * 1024;

/** The arguments of `session_tree`. */
export interface TreeArguments {
  readonly session: string;
  readonly after?: string | undefined;
}

/** A node that is shown: the ends of branches, branching points, and labelled nodes. */
interface Landmark {
  readonly node: TreeNode;
  readonly depth: number;
  /** How many nodes between the landmark above and this one are not shown. */
  readonly skipped: number;
}

/** The branches and labels of a session. */
export async function showTree(scope: SessionScope, { session, after }: TreeArguments): Promise<string> {
  const head = await scope.head(session);
  const previews = new Map<string, string>();
  const links: Entry[] = [];
  let characters = 0;
  for await (const entry of scope.manager.store.read(head.header.id, { before: head.version })) {
    const link = linkOf(entry);
    links.push(link);
    if (isNode(entry) && !previews.has(entry.id)) previews.set(entry.id, previewOf(entry));
    characters += entryCharacters(link) + PREVIEW_CHARACTERS;
    if (characters > TREE_CHARACTERS_MAX) {
      throw new SessionError("TOO_LARGE", "The session has too many nodes for one tree; read it with read_session.");
    }
  }
  const landmarks = landmarksOf(buildTree(links), head.leafId);
  const start = after === undefined ? 0 : landmarks.findIndex(({ node }) => node.entry.id === after) + 1;
  return composeAnswer((answer) => {
    answer.add(PREFACE);
    answer.add(`\nSession ${originOf(answer, head)}\n`);
    let shown = start;
    for (const landmark of landmarks.slice(start)) {
      if (!answer.add(lineOf(answer, landmark, previews, head.leafId))) break;
      shown++;
    }
    const last = landmarks[shown - 1];
    if (landmarks.length === 0) return answer.end("The session has no entries.");
    if (shown === landmarks.length || last === undefined)
      return answer.end("This is the whole tree. Call read_session to read a branch.");
    return answer.end(
      `The tree goes on: session_tree with "session" and "after": ${answer.value(last.node.entry.id, 512)}.`,
    );
  });
}

function landmarksOf(roots: readonly TreeNode[], leafId: string | null): Landmark[] {
  const landmarks: Landmark[] = [];
  // Iterative: a path can be longer than the call stack allows.
  const open = roots.map((node) => ({ node, depth: 0, skipped: 0, begins: true })).reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, depth, skipped, begins } = next;
    const { children, entry, label } = node;
    const isShown = begins || children.length !== 1 || label !== undefined || entry.id === leafId;
    if (isShown) landmarks.push({ node, depth, skipped });
    const branches = children.length > 1;
    for (const child of children.toReversed()) {
      open.push({
        node: child,
        depth: branches ? depth + 1 : depth,
        skipped: isShown ? 0 : skipped + 1,
        begins: branches,
      });
    }
  }
  return landmarks;
}

function lineOf(
  answer: Answer,
  { node: { entry, children, label }, depth, skipped }: Landmark,
  previews: ReadonlyMap<string, string>,
  leafId: string | null,
): string {
  const marks = [
    ...(label === undefined ? [] : [`label ${answer.value(label)}`]),
    ...(children.length > 1 ? [`${children.length} branches`] : []),
    ...(entry.id === leafId ? ["the leaf, where the session goes on"] : []),
  ];
  const preview = previews.get(entry.id) ?? "";
  const indent = "  ".repeat(Math.min(depth, INDENT_MAX));
  return [
    ...(skipped > 0 ? [`${indent}  … ${skipped} entries`] : []),
    `${indent}- ${[answer.value(entry.id, 512), entry.timestamp, ...marks].join(", ")}: ${answer.value(preview)}`,
  ].join("\n");
}

/** The fields from which the tree is built. */
function linkOf(entry: Entry): Entry {
  const { id, parentId, seq, type, timestamp } = entry;
  const target = "targetId" in entry ? { targetId: entry.targetId } : {};
  const label = "label" in entry ? { label: entry.label } : {};
  return { id, parentId, seq, type, timestamp, ...target, ...label } as Entry;
}

function previewOf(entry: Entry): string {
  if (entry.type === "message") {
    const { message } = entry;
    const calls = message.role === "assistant" ? (message.toolCalls ?? []).slice(0, 3).map(({ name }) => name) : [];
    const text = cutText(textOf(message.content), 0, PREVIEW_CHARACTERS);
    return `${message.role}: ${[text, ...calls.map((name) => `call of ${cutText(name, 0, 40)}`)].filter((each) => each !== "").join(", ")}`;
  }
  if (entry.type === "compaction" || entry.type === "branch_summary") {
    return `${entry.type}: ${cutText(entry.summary, 0, PREVIEW_CHARACTERS)}`;
  }
  return entry.type;
}
