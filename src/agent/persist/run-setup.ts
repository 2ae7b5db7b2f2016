import { createHash } from "node:crypto";
import { defined } from "../../internal/defined.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { Entry, EntryDraft, EntryOf } from "../../session/log/entry.ts";
import { isImported } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { type Setup, SHARED_FIELDS, type SharedField } from "../../session/log/setup.ts";
import type { SessionStore } from "../../session/store.ts";
import { outputSchema } from "../output/run-output.ts";
import { parametersOf } from "../model/ask-model.ts";
import type { LoopOptions } from "../loop-options.ts";
import type { OfferedTools } from "../tools/offer-tools.ts";

/** The name that the setup of an unnamed agent records. */
const UNNAMED_AGENT = "agent";

/** A setup with all its fields in it: none refers to another entry. */
export type WholeSetup = Omit<Setup, "unchanged">;

/** The setup of a run's requests: everything but their messages. */
export interface SentSetup extends WholeSetup {
  /** The entry that records it; null if the run is not stored. */
  readonly id: string | null;
}

/** The setup of an agent as the program has it, with the text of its instructions. */
export interface PresentSetup {
  readonly setup: WholeSetup;
  /** Whether the log gets the text of the instructions, and not only their digest. */
  readonly recordsInstructions: boolean;
  /** The model that is asked, as `provider/id`. */
  readonly model: string | null;
  /** Whether the caller passed these instructions to the recovery, so that they replace the recorded ones. */
  readonly replacesInstructions: boolean;
}

/** A setup on record. */
export interface StoredSetup {
  readonly id: string;
  readonly setup: WholeSetup;
  /** The entries that contain the shared fields. */
  readonly holders: { readonly [Field in SharedField]?: string };
}

/** The setup of an agent with these options and instructions. */
export function presentSetup(
  options: LoopOptions,
  { schemas }: OfferedTools,
  given: { readonly instructions: string | null; readonly replacesInstructions: boolean },
): PresentSetup {
  const { agentName = UNNAMED_AGENT, model, output, toolChoice, context = [], recordInstructions = true } = options;
  const { providerOptions, ...parameters } = parametersOf(options);
  const setup: WholeSetup = {
    agent: agentName,
    ...defined({ instructions: given.instructions ?? undefined }),
    ...(schemas.length > 0 && { tools: schemas }),
    ...defined({ ...parameters, toolChoice, output: output && outputSchema(output) }),
    ...(providerOptions !== undefined && { providerOptionsDigest: digestOf(textOfJson(providerOptions)) }),
    ...defined({ cacheLifetimeMs: model?.cacheLifetimeMs }),
    ...(context.length > 0 && { transformed: true }),
  };
  return {
    setup,
    recordsInstructions: recordInstructions,
    model: model === undefined ? null : `${model.provider}/${model.id}`,
    replacesInstructions: given.replacesInstructions,
  };
}

/** How a run got its setup. */
export interface SetupChoice {
  readonly sent: SentSetup;
  readonly stored: StoredSetup;
  /** The entry to append; empty if the agent's last setup on the path is the same. */
  readonly drafts: readonly EntryDraft[];
}

/**
 * Chooses the setup of a run's requests, and the part of it that must still be recorded. A new run sends the agent's present setup
 * (`recorded` is null). A recovered run sends the recorded setup; if the log has only a digest of the instructions, it sends their present
 * text. `last` is the agent's last setup on the path.
 */
export function chooseSetup(
  present: PresentSetup,
  recorded: { readonly setup: WholeSetup; readonly model: string | null } | null,
  last: StoredSetup | null,
): SetupChoice {
  const own = asRecorded(present);
  const setup = recorded === null ? own : keptOf(recorded, present, own);
  const { instructions: text } = present.setup;
  const { instructions = setup.instructionsDigest === undefined ? undefined : text } = setup;
  const isSame = last !== null && textOfJson(sorted(last.setup)) === textOfJson(sorted(setup));
  const stored = isSame ? last : storedAs(uuidv7(), setup, last);
  return {
    sent: { ...(recorded === null ? present.setup : setup), ...defined({ instructions }), id: stored.id },
    stored,
    drafts: isSame ? [] : [draftOf(stored)],
  };
}

/**
 * A recorded setup, with the fields that it shares with earlier ones; null if it is incomplete or imported, or if a fork has it from a
 * session of another user.
 */
export async function readSetup(
  store: SessionStore,
  header: SetupReader,
  id: string | undefined,
): Promise<StoredSetup | null> {
  const entry = id === undefined ? null : await store.getEntry(header.id, id);
  if (!isOwnSetup(header, entry) || !(await isFromSameUser(store, header, entry.seq))) return null;
  const { unchanged = {}, ...setup } = setupOf(entry);
  const fields: { -readonly [Field in SharedField]?: unknown } = {};
  const holders: { -readonly [Field in SharedField]?: string } = {};
  const known = new Map<string, Entry | null>([[entry.id, entry]]);
  for (const field of SHARED_FIELDS) {
    const holder = setup[field] === undefined ? unchanged[field] : entry.id;
    if (holder === undefined) continue;
    if (!known.has(holder)) known.set(holder, await store.getEntry(header.id, holder));
    const held = known.get(holder) ?? null;
    if (!isOwnSetup(header, held) || held[field] === undefined) return null;
    fields[field] = held[field];
    holders[field] = holder;
  }
  return { id: entry.id, setup: { ...setup, ...(fields as Pick<Setup, SharedField>) }, holders };
}

/** The fields of a session's header that tell whose setups it has. */
type SetupReader = Pick<SessionHeader, "id" | "inherited" | "userId" | "forkedFrom">;

/** Whether an entry was appended in this session, or in a session of the same user from which it was forked. */
async function isFromSameUser(store: SessionStore, { userId, forkedFrom }: SetupReader, seq: number): Promise<boolean> {
  let source = forkedFrom;
  while (source !== null && seq < source.version) {
    const head = await store.head(source.sessionId);
    // Of a removed session, nobody knows the user.
    if (head === null || head.header.userId !== userId) return false;
    source = head.header.forkedFrom;
  }
  return true;
}

/** Whether an entry is a setup that a run wrote. An imported setup has no effect. */
function isOwnSetup(header: Pick<SessionHeader, "inherited">, entry: Entry | null): entry is EntryOf<"setup"> {
  return entry?.type === "setup" && !isImported(header, entry, entry.seq);
}

function setupOf(entry: EntryOf<"setup">): Setup {
  const { type: _type, id: _id, parentId: _parent, timestamp: _time, seq: _seq, by: _by, run: _run, ...rest } = entry;
  const { inherited: _inherited, ...setup } = rest;
  return setup;
}

/** The setup in the form in which it is recorded: as JSON, like the request to a provider. */
function asRecorded({ setup: given, recordsInstructions }: PresentSetup): WholeSetup {
  const setup = JSON.parse(textOfJson(given)) as WholeSetup;
  const { instructions, ...rest } = setup;
  if (instructions === undefined || recordsInstructions) return setup;
  return { ...rest, instructionsDigest: digestOf(instructions) };
}

/** The recorded setup, with the fields that only the program has. */
function keptOf(
  { setup: recorded, model }: { readonly setup: WholeSetup; readonly model: string | null },
  present: PresentSetup,
  own: WholeSetup,
): WholeSetup {
  const { agent, instructions: text, instructionsDigest: digest, tools, output } = recorded;
  const isPresent = present.replacesInstructions || (text === undefined && digest !== undefined);
  const { instructions, instructionsDigest } = isPresent ? own : { instructions: text };
  // Another model has not cached this prefix, and may not accept the same parameters.
  const { thinkingLevel, toolChoice, maxOutputTokens, temperature, stop } = model === present.model ? recorded : own;
  const { providerOptionsDigest, cacheLifetimeMs, transformed, output: ownOutput } = own;
  return {
    agent,
    ...defined({
      instructions,
      instructionsDigest,
      tools,
      thinkingLevel,
      toolChoice,
      maxOutputTokens,
      temperature,
      stop,
    }),
    // Only the program can check the output, so it determines whether there is one.
    ...defined({ output: ownOutput === undefined ? undefined : (output ?? ownOutput) }),
    ...defined({ providerOptionsDigest, cacheLifetimeMs, transformed }),
  };
}

function storedAs(id: string, setup: WholeSetup, last: StoredSetup | null): StoredSetup {
  const holders: { -readonly [Field in SharedField]?: string } = {};
  for (const field of SHARED_FIELDS) {
    if (setup[field] === undefined) continue;
    const isSame = textOfJson(last?.setup[field] ?? null) === textOfJson(setup[field]);
    holders[field] = (isSame ? last?.holders[field] : undefined) ?? id;
  }
  return { id, setup, holders };
}

function draftOf({ id, setup, holders }: StoredSetup): EntryDraft {
  const own: { -readonly [Key in keyof WholeSetup]: WholeSetup[Key] } = { ...setup };
  const unchanged: { -readonly [Field in SharedField]?: string } = {};
  for (const field of SHARED_FIELDS) {
    const holder = holders[field];
    if (holder === undefined || holder === id) continue;
    delete own[field];
    unchanged[field] = holder;
  }
  return { type: "setup", id, ...own, ...(Object.keys(unchanged).length > 0 && { unchanged }) };
}

/** The fields in a fixed order. The order of keys within them is kept, because it matters for a provider's cache. */
function sorted(setup: WholeSetup): readonly (readonly [string, unknown])[] {
  return Object.entries(setup).sort(([one], [other]) => (one < other ? -1 : 1));
}

function digestOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("base64")}`;
}

function textOfJson(value: unknown): string {
  return JSON.stringify(value);
}
