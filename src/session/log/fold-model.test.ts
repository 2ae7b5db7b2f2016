import fc from "fast-check";
import { expect, test } from "vitest";
import { assistant, message, SampleLog, timeAt, usage, user } from "../../../test/sample-log.ts";
import { type Entry, type EntryBody, type EntryDraft, isNode, type SessionStatus } from "./entry.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead } from "./fold.ts";
import { NO_SETTINGS, type Settings } from "./settings.ts";
import type { AppendOptions } from "../store.ts";
import type { Usage } from "../usage.ts";

type Step = {
  readonly drafts: readonly ((nodes: readonly string[]) => EntryDraft)[];
  readonly onto: number | null | undefined;
};

const word = fc.constantFrom("a", "b", "constructor", "");
const tokens: fc.Arbitrary<Usage> = fc
  .tuple(fc.nat(9), fc.nat(9), fc.option(fc.nat(9), { nil: undefined }))
  .map(([input, output, cached]) => ({
    ...usage(input, output),
    ...(cached === undefined ? {} : { cacheReadTokens: cached }),
  }));
const set = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.nat(3), { noNullPrototype: true });

const bodies: fc.Arbitrary<EntryBody> = fc.oneof(
  word.map((text): EntryBody => ({ type: "message", message: user(text) })),
  fc.record({ tokens, cost: fc.nat(3), provider: word, model: word }).map(
    ({ tokens: spent, ...extras }): EntryBody => ({
      type: "message",
      message: assistant("x", { ...extras, usage: spent }),
    }),
  ),
  fc.constant<EntryBody>({ type: "message", message: assistant("bare") }),
  tokens.map(
    (spent): EntryBody => ({
      type: "compaction",
      summary: "s",
      firstKeptEntryId: "x",
      tokensBefore: 1,
      usage: spent,
      cost: 2,
    }),
  ),
  tokens.map((spent): EntryBody => ({ type: "branch_summary", summary: "s", fromId: null, usage: spent, cost: 1 })),
  word.map((provider): EntryBody => ({ type: "model_change", provider: `p${provider}`, modelId: "m" })),
  word.map((level): EntryBody => ({ type: "thinking_level_change", thinkingLevel: `l${level}` })),
  fc.record({ set, unset: fc.subarray(["a", "b"]) }).map((fields): EntryBody => ({ type: "variables", ...fields })),
  fc.constant<EntryBody>({ type: "variables", set: {}, unset: [], systemPrompt: "p", activeTools: ["t"] }),
  fc.constant<EntryBody>({ type: "custom", customType: "c" }),
  word.map((agent): EntryBody => ({ type: "setup", agent: agent === "" ? "__proto__" : agent })),
  word.map((name): EntryBody => ({ type: "session_info", name })),
  fc
    .constantFrom<SessionStatus>("active", "closed", "suspended")
    .map((status): EntryBody => ({ type: "status", status })),
  fc
    .tuple(word, fc.constantFrom("started" as const, "finished" as const))
    .map(([runId, phase]): EntryBody => ({ type: "run", runId: `r${runId}`, phase })),
  fc.constant<EntryBody>({ type: "trailer", closedAt: timeAt(0), entryCount: 0, usage: usage(0) }),
);
const draft = fc.oneof(
  { weight: 5, arbitrary: bodies.map((body) => () => body as EntryDraft) },
  {
    weight: 1,
    arbitrary: fc.option(fc.nat(), { freq: 6 }).map(
      (at) =>
        (nodes: readonly string[]): EntryDraft => ({
          type: "leaf",
          targetId: at === null || nodes.length === 0 ? null : (nodes[at % nodes.length] as string),
        }),
    ),
  },
);
const step: fc.Arbitrary<Step> = fc.record({
  drafts: fc.array(draft, { minLength: 1, maxLength: 3 }),
  onto: fc.oneof<fc.WeightedArbitrary<Step["onto"]>[]>(
    { weight: 4, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.option(fc.nat(), { freq: 6 }) },
  ),
});

test("folding step by step gives the same result as a fold of the whole log, for the head and every node's path", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      const log = new SampleLog();
      for (const { drafts, onto } of steps) {
        const nodes = log.entries.filter(isNode).map((entry) => entry.id);
        const at = onto === null || onto === undefined || nodes.length === 0 ? onto : nodes[onto % nodes.length];
        const guard = { holds: true } as const;
        const options: AppendOptions = at === undefined || typeof at === "number" ? { guard } : { guard, onto: at };
        log.append(
          drafts.map((make) => make(nodes)),
          options,
        );
      }
      expect({ ...log.head, path: whole(log, log.head.path) }).toEqual(headOf(log));
      for (const entry of log.entries) {
        const path = log.pathOf(entry.id);
        expect(path && whole(log, path)).toEqual(isNode(entry) ? pathOf(log.entries, entry.id) : null);
      }
    }),
    { numRuns: 300 },
  );
});

test("every store that folds the same entries in one append or in many comes to the same head", () => {
  fc.assert(
    fc.property(fc.array(bodies, { minLength: 1, maxLength: 12 }), (all) => {
      const drafts = all.map((body, index): EntryDraft => ({ ...body, id: `e${index}`, timestamp: timeAt(index) }));
      const [whole, parts] = [new SampleLog(), new SampleLog()];
      whole.append(drafts);
      for (const each of drafts) parts.append([each], { guard: { holds: true } });
      expect({ ...whole.head, updatedAt: "" }).toEqual({ ...parts.head, updatedAt: "" });
      expect(whole.entries).toEqual(parts.entries);
    }),
  );
});

test("a log copied entry by entry folds to the same head", () => {
  const log = new SampleLog().say({ a: user("1"), b: assistant("2", { usage: usage(3), cost: 1 }) });
  log.append([message("c", user("3"))], { onto: "a" });
  log.append([
    { type: "leaf", targetId: "c" },
    { type: "label", targetId: "b", label: "kept" },
  ]);
  const copy = new SampleLog();
  copy.append(log.entries, { verbatim: true });
  expect(copy.entries).toEqual(log.entries);
  expect({ ...copy.head, updatedAt: "" }).toEqual({ ...log.head, updatedAt: "" });
});

/** A path with all that is set on it. */
type WholePath = Omit<PathSummary, "settings"> & { readonly settings: Settings };

function whole(log: SampleLog, path: PathSummary): WholePath {
  return { ...path, settings: log.settings(path) };
}

/** The head, computed by looking at the whole log again for each field. */
function headOf({ entries, head }: SampleLog): Omit<SessionHead, "path"> & { readonly path: WholePath } {
  const messages = entries.filter((entry) => entry.type === "message");
  const leafId = entries.reduce<string | null>((leaf, entry) => {
    if (entry.type === "leaf") return entry.targetId;
    return isNode(entry) && entry.parentId === leaf ? entry.id : leaf;
  }, null);
  const status = entries.findLast((entry) => entry.type === "status");
  const name = entries.findLast((entry) => entry.type === "session_info");
  const runs = entries.filter((entry) => entry.type === "run");
  const openRuns = runs.filter(
    (run, index) => run.phase === "started" && !runs.slice(index + 1).some((later) => later.runId === run.runId),
  );
  const trailer = entries.findLastIndex((entry) => entry.type === "trailer");
  const reopened = entries.findLastIndex(
    (entry) => isNode(entry) || (entry.type === "run" && entry.phase === "started"),
  );
  const texts = messages
    .filter((entry) => entry.message.role === "user")
    .map((entry) => entry.message.content as string);
  return {
    header: head.header,
    version: entries.length,
    leafId,
    path: leafId === null ? { ...EMPTY_PATH, settings: NO_SETTINGS } : pathOf(entries, leafId),
    status: status?.status ?? "active",
    statusReason: null,
    name: name?.name || null,
    updatedAt: head.updatedAt,
    modifiedAt: messages.at(-1)?.timestamp ?? head.header.createdAt,
    messageCount: messages.length,
    firstMessage: texts.find((text) => text !== "") ?? null,
    ...spentOn(entries),
    openRuns: openRuns.map(({ runId }) => {
      const claims = claimsOf(entries, runId);
      return { runId, state: "started", ...(claims > 1 ? { claims } : {}) };
    }),
    undone: [],
    closed: trailer >= 0 && trailer > reopened,
  };
}

/** How often an open run was started since the last message. */
function claimsOf(entries: readonly Entry[], runId: string): number {
  let claims = 0;
  for (const entry of entries) {
    if (entry.type === "message") claims = Math.min(claims, 1);
    else if (entry.type === "run" && entry.runId === runId) claims = entry.phase === "started" ? claims + 1 : 0;
  }
  return claims;
}

function pathOf(entries: readonly Entry[], id: string): WholePath {
  const path: Entry[] = [];
  for (let entry = find(entries, id); entry !== undefined; entry = find(entries, entry.parentId)) path.unshift(entry);
  const models = path.flatMap((entry) => {
    if (entry.type === "model_change") return [{ provider: entry.provider, modelId: entry.modelId }];
    if (entry.type !== "message" || entry.message.role !== "assistant") return [];
    const { provider, model } = entry.message;
    return provider === undefined || model === undefined ? [] : [{ provider, modelId: model }];
  });
  const variables = new Map<string, unknown>();
  for (const entry of path) {
    if (entry.type !== "variables") continue;
    for (const key of entry.unset) variables.delete(key);
    for (const [key, value] of Object.entries(entry.set)) variables.set(key, value);
  }
  const settings = path.findLast((entry) => entry.type === "variables" && entry.systemPrompt !== undefined);
  return {
    depth: path.length,
    turnCount: path.filter((entry) => entry.type === "message").length,
    ...spentOn(path.filter((entry) => entry.type === "message")),
    compactionId: path.findLast((entry) => entry.type === "compaction")?.id ?? null,
    model: models.at(-1) ?? null,
    thinkingLevel: path.findLast((entry) => entry.type === "thinking_level_change")?.thinkingLevel ?? "off",
    settings: {
      variables: Object.fromEntries(variables) as Settings["variables"],
      systemPrompt: settings === undefined ? null : "p",
      activeTools: settings === undefined ? [] : ["t"],
      activeSkills: [],
      setups: Object.fromEntries(path.flatMap((entry) => (entry.type === "setup" ? [[entry.agent, entry.id]] : []))),
    },
  };
}

function find(entries: readonly Entry[], id: string | null): Entry | undefined {
  return entries.find((entry) => entry.id === id);
}

function spentOn(entries: readonly Entry[]): { usage: Usage; cost: number } {
  const spending = entries.flatMap((entry): { usage?: Usage; cost?: number }[] => {
    if (entry.type === "message") return entry.message.role === "assistant" ? [entry.message] : [];
    return entry.type === "compaction" || entry.type === "branch_summary" ? [entry] : [];
  });
  const spent = spending.flatMap((each) => each.usage ?? []);
  const total = (field: "inputTokens" | "outputTokens" | "totalTokens" | "cacheReadTokens") =>
    spent.reduce((sum, each) => sum + (each[field] ?? 0), 0);
  return {
    usage: {
      inputTokens: total("inputTokens"),
      outputTokens: total("outputTokens"),
      totalTokens: total("totalTokens"),
      ...(spent.some((each) => each.cacheReadTokens !== undefined)
        ? { cacheReadTokens: total("cacheReadTokens") }
        : {}),
    },
    cost: spending.reduce((sum, each) => sum + (each.cost ?? 0), 0),
  };
}
