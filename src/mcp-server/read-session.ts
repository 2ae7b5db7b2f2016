import { itemOf, type TranscriptBlock, type TranscriptItem } from "../export/transcript-item.ts";
import { SessionError, UnknownEntryError } from "../session/errors.ts";
import { type Entry, isNode } from "../session/log/entry.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { readPathAfter, readPathPage } from "../tree/path-page.ts";
import { type Answer, composeAnswer, PREFACE, tokensAtMost } from "./answer.ts";
import { originOf, type SessionScope } from "./session-scope.ts";
import { attachmentBytes } from "../session/message.ts";

/** How many nodes are read for a page; not all of them are turns, or fit. */
const NODES = 40;
const BLOCKS_MAX = 8;
/** How many characters of each kind of block a page shows. */
const SHOWN = { text: 1200, Thinking: 200, Call: 300, other: 500 } as const;
/** How much less a page shows of a turn that does not fit. */
const SCALES: readonly number[] = [1, 1 / 4, 1 / 16, 1 / 64];
/** How many characters of one entry are shown: the first number that fits. */
const WINDOWS: readonly number[] = [6000, 4000, 2000, 1000];

/** The arguments of `read_session`. */
export interface ReadArguments {
  readonly session: string;
  readonly around?: string | undefined;
  readonly before?: string | undefined;
  readonly after?: string | undefined;
  readonly entry?: string | undefined;
  readonly from?: number | undefined;
}

/** A page of turns, or a part of one entry. */
export async function readSession(scope: SessionScope, args: ReadArguments): Promise<string> {
  const { around, before, after, entry, from = 0 } = args;
  if ([around, before, after, entry].filter((each) => each !== undefined).length > 1) {
    throw new SessionError("INVALID_OPTION", "Give only one of around, before, after and entry.");
  }
  const head = await scope.head(args.session);
  if (entry !== undefined) return entryPart(head, await nodeOf(scope, head, entry), from);
  const page = await readPage(scope, head, args);
  return composeAnswer((answer) => pageLines(answer, head, page));
}

/** Nodes of one path in the order of the path, and the one that the page must show. */
interface Page {
  readonly nodes: readonly Entry[];
  /** The position of that node. */
  readonly anchor: number;
  readonly isStart: boolean;
  readonly isEnd: boolean;
}

async function readPage(scope: SessionScope, head: SessionHead, args: ReadArguments): Promise<Page> {
  const { store } = scope.manager;
  const { id } = head.header;
  const up = async (from: string | null): Promise<{ items: readonly Entry[]; more: boolean }> =>
    from === null ? { items: [], more: false } : await readPathPage(store, id, from, NODES);
  if (args.after !== undefined) {
    const { items, more } = await followingNodes(scope, head, await nodeOf(scope, head, args.after));
    return { nodes: items, anchor: 0, isStart: false, isEnd: !more };
  }
  if (args.around !== undefined) {
    const anchor = await nodeOf(scope, head, args.around);
    const [earlier, later] = [await up(anchor.id), await followingNodes(scope, head, anchor)];
    const nodes = [...earlier.items, ...later.items];
    return { nodes, anchor: earlier.items.length - 1, isStart: !earlier.more, isEnd: !later.more };
  }
  const from = args.before === undefined ? head.leafId : (await nodeOf(scope, head, args.before)).parentId;
  const { items, more } = await up(from);
  return { nodes: items, anchor: items.length - 1, isStart: !more, isEnd: args.before === undefined };
}

/** The nodes after one on the path to the leaf; of another branch, its first nodes in the order of the log. */
async function followingNodes(
  { manager: { store } }: SessionScope,
  { header: { id }, leafId }: SessionHead,
  node: Entry,
): Promise<{ readonly items: readonly Entry[]; readonly more: boolean }> {
  if (leafId === node.id) return { items: [], more: false };
  const onPath = await readPathAfter(store, id, { leafId, after: node, limit: NODES });
  if (onPath.items.length > 0) return onPath;
  const items: Entry[] = [];
  let tip = node.id;
  for await (const entry of store.read(id, { after: node.seq })) {
    if (entry.parentId !== tip || !isNode(entry)) continue;
    if (items.length === NODES) return { items, more: true };
    items.push(entry);
    tip = entry.id;
  }
  return { items, more: false };
}

async function nodeOf({ manager }: SessionScope, { header }: SessionHead, entryId: string): Promise<Entry> {
  const entry = await manager.store.getEntry(header.id, entryId);
  if (entry === null || !isNode(entry)) throw new UnknownEntryError(header.id, entryId);
  return entry;
}

function pageLines(answer: Answer, head: SessionHead, { nodes, anchor, isStart, isEnd }: Page): string {
  answer.add(PREFACE);
  answer.add(`\nSession ${originOf(answer, head)}`);
  const turns = nodes.flatMap((entry, index) => {
    const item = itemOf(entry);
    return item === null || item.blocks.length === 0 ? [] : [{ entry, item, index }];
  });
  const shown = new Map<number, string>();
  let room = answer.room;
  // Begins at the wanted turn and takes its neighbours in turn, so that the page has both sides of it.
  const distance = ({ index }: { readonly index: number }): number => Math.abs(index - anchor);
  for (const { entry, item, index } of turns.toSorted((a, b) => distance(a) - distance(b))) {
    const scales = shown.size === 0 ? SCALES : SCALES.slice(0, 1);
    const fitting = scales.map((scale) => turnLines(answer, entry, item, scale)).find((lines) => costOf(lines) <= room);
    if (fitting === undefined) break;
    room -= costOf(fitting);
    shown.set(index, fitting);
  }
  const indexes = [...shown.keys()].sort((a, b) => a - b);
  for (const index of indexes) answer.add(shown.get(index) as string);
  const [first, last] = [indexes[0], indexes.at(-1)];
  if (first === undefined || last === undefined) return answer.end("There are no turns here.");
  const call = (name: string, index: number): string =>
    `read_session with "session" and "${name}": ${answer.value((nodes[index] as Entry).id, 512)}`;
  const isFirst = isStart && turns.every(({ index }) => index >= first);
  const isLast = isEnd && turns.every(({ index }) => index <= last);
  return answer.end(
    [
      isFirst ? "This is the beginning of the session." : `Earlier turns: ${call("before", first)}.`,
      isLast ? "This is the end of the session." : `Later turns: ${call("after", last)}.`,
      'A turn in full: read_session with "session", "entry" and "from".',
    ].join("\n"),
  );
}

function costOf(lines: string): number {
  return tokensAtMost(`${lines}\n`);
}

function turnLines(answer: Answer, entry: Entry, { title, blocks }: TranscriptItem, scale: number): string {
  const lines = ["", `${answer.value(title)}, entry ${answer.value(entry.id, 512)}, ${entry.timestamp}:`];
  const count = Math.max(1, Math.floor(BLOCKS_MAX * scale));
  for (const block of blocks.slice(0, count)) {
    const text = textOfBlock(block);
    if (block.type === "folded") lines.push(`${answer.value(block.title)}:`);
    lines.push(answer.quote(text, 0, Math.floor(charactersOf(block) * scale)));
  }
  if (blocks.length > count) lines.push(`[${blocks.length - count} more parts are left out]`);
  return lines.join("\n");
}

function charactersOf(block: TranscriptBlock): number {
  if (block.type === "text") return SHOWN.text;
  if (block.type !== "folded") return SHOWN.other;
  if (block.title === "Thinking") return SHOWN.Thinking;
  return block.title.startsWith("Call of ") ? SHOWN.Call : SHOWN.other;
}

function textOfBlock(block: TranscriptBlock): string {
  return "text" in block ? block.text : `[${block.type} of ${attachmentBytes(block)} bytes]`;
}

/** A part of one entry, from a character on. */
function entryPart(head: SessionHead, entry: Entry, from: number): string {
  const blocks = itemOf(entry)?.blocks ?? [];
  const text = blocks
    .map((block) => (block.type === "folded" ? `${block.title}:\n${block.text}` : textOfBlock(block)))
    .join("\n\n");
  return composeAnswer((answer) => {
    answer.add(PREFACE);
    answer.add(`\nSession ${originOf(answer, head)}`);
    answer.add(`Entry ${answer.value(entry.id, 512)}, ${entry.timestamp}:`);
    const start = Math.min(from, text.length);
    const characters = WINDOWS.find((window) => answer.add(answer.quote(text, start, start + window))) ?? 0;
    const next = start + characters;
    if (next >= text.length) return answer.end("This is the end of the entry.");
    return answer.end(`It goes on: read_session with "session", "entry" and "from": ${next}.`);
  });
}
