import { defined } from "../../internal/defined.ts";
import { SessionCapacityError } from "../../session/errors.ts";
import type { EntryDraft, EntryOf } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { inputIdOf } from "../../session/log/open-runs.ts";
import { afterRun, newRun, type RunState } from "../../session/log/run-fold.ts";
import type { Settings } from "../../session/log/settings.ts";
import type { SessionStore } from "../../session/store.ts";
import { Transcript } from "../../session/value/transcript.ts";
import { pathAt } from "../../tree/path-reader.ts";
import { claimRun } from "./claim-run.ts";
import type { LogAccess } from "./log-access.ts";
import { type LogPosition, positionOf } from "./log-position.ts";
import type { LogRequest } from "./persist-option.ts";
import { readStart } from "./read-start.ts";
import { resumeStateOf } from "./resume-state.ts";
import { chooseSetup, readSetup, type SetupChoice } from "./run-setup.ts";
import { missingRows, settingDrafts } from "./start-drafts.ts";

/**
 * Starts or continues a run in a session that is stored in a store or a file.
 *
 * - If the user session derives from this session, or starts with the same rows, its new rows are appended.
 * - Any other user session is appended to this session, and the run works on both.
 * - If the user session derives from an earlier entry, it is appended below that entry. The leaf does not move, unless
 *   the same rows are already there: then this is a retry, and the leaf moves.
 * - For a new fork, `given` is its start, and its leaf moves there.
 *
 * @throws {SessionCapacityError} if the session has no room for the input and an answer; then nothing is written.
 */
export function continueLog(access: LogAccess, request: LogRequest, given: LogPosition | null = null): Promise<void> {
  const store = access.store as SessionStore;
  const sessionId = access.sessionId as string;
  const { runId, systemPrompt, answers, mayBegin } = request;
  const version = request.version ?? knownVersion(request.user.transcript, sessionId);
  const early = request.head !== undefined;
  return claimRun(access, { runId, version, answers, early }, async (claim) => {
    const { head, condition, ends, started, request: asked, isFirst } = claim;
    const { user, from } = given ? { user: request.user, from: given } : await positionOf(store, head, request.user);
    const { onto, drafts, repeated } = await missingRows(store, sessionId, user.transcript, from);
    const atLeaf = onto === head.leafId;
    const moved = !atLeaf && (repeated || given !== null);
    const moves: EntryDraft[] = moved ? [{ type: "leaf", targetId: onto }] : [];
    const settings = await store.settings(sessionId, await pathAt(store, head, onto));
    const before = stateBefore(request, head, asked);
    const recorded = isFirst || asked !== null ? null : await recordedStart(store, head, before.state);
    const choice = await setupFor(store, head, request, settings, recorded);
    const isKept = recorded !== null && choice !== null && systemPrompt !== undefined;
    const prompt = isKept ? (choice.sent.instructions ?? null) : systemPrompt;
    const by = asked?.by ?? request.by;
    const setup = (choice?.drafts ?? []).map((draft) => (hasWordsOfRequest(draft) ? withAuthor(draft, by) : draft));
    const settingsAndSetup = [...settingDrafts(prompt, settings), ...setup];
    const isInput = asked?.messages !== undefined || request.by !== undefined;
    const said = isInput ? drafts.map((draft) => withAuthor(draft, by)) : askedBy(drafts, runId, by);
    const preceding = [...ends, ...moves, ...said, ...settingsAndSetup];
    const start = { ...started, ...defined({ setup: choice?.stored.id }) };
    if (said.length > 0) checkRoom(access, said.length);
    await request.begin({
      ...before,
      access,
      lastId: onto,
      atLeaf: atLeaf || moved,
      drafts: [...preceding, isFirst ? { ...start, before: preceding.length } : start],
      append: { ...(atLeaf ? { below: onto } : { onto }), verbatim: true, ...condition },
      user,
      setup: choice?.sent ?? null,
      mayBegin,
    });
  });
}

/** The fields of a start about the run's requests. */
type RecordedStart = Pick<RunState, "setup" | "model">;

/** The last start of a run that continues; null if the log has none. */
async function recordedStart(store: SessionStore, head: SessionHead, state: RunState): Promise<RecordedStart | null> {
  if (state.startedAt !== null) return state;
  const start = await readStart(store, head, state.runId);
  return start === null ? null : { setup: start.setup ?? null, model: start.model ?? null };
}

/** The setup of the run's requests; null if it records no setup. */
async function setupFor(
  store: SessionStore,
  { header }: SessionHead,
  { setup: present }: LogRequest,
  { setups }: Settings,
  start: RecordedStart | null,
): Promise<SetupChoice | null> {
  if (present === undefined) return null;
  const stored = start === null || start.setup === null ? null : await readSetup(store, header, start.setup);
  const recorded = stored === null ? null : { setup: stored.setup, model: start?.model ?? null };
  const { agent } = stored?.setup ?? present.setup;
  const lastId = Object.hasOwn(setups, agent) ? setups[agent] : undefined;
  const last = lastId === stored?.id ? stored : await readSetup(store, header, lastId);
  return chooseSetup(present, recorded, last);
}

/**
 * A run adds an answer to its input. A session without room for both refuses the run, so that it does not store input without an answer.
 */
function checkRoom({ room }: LogAccess, turns: number): void {
  if (room !== null && room.left < turns + 1) throw new SessionCapacityError("turns in a session", room.limit);
}

/** The state of the run as its caller knew it, and the position up to which that was read. */
function stateBefore(
  { runId, user }: LogRequest,
  { header, version }: SessionHead,
  asked: EntryOf<"run_request"> | null,
): { readonly state: RunState; readonly from: number } {
  const resume = resumeStateOf(user.transcript);
  if (resume !== null && resume.sessionId === header.id) {
    const { run, runId: open, version: from } = resume;
    if (open === runId || open === null) return { state: { ...run, runId }, from };
    // The claim of another run ends the one that was open.
    return { state: afterRun(newRun(runId), { ...run, end: "failed" }), from };
  }
  return { state: newRun(runId), from: asked?.seq ?? version };
}

/** The version of a session's log that `resumeSession` read. Input appended after that does not prevent recovery. */
function knownVersion(transcript: Transcript, sessionId: string): number | undefined {
  const origin = Transcript.originOf(transcript);
  const known = resumeStateOf(transcript) ?? { sessionId: origin?.sessionId, version: origin?.resumedAt };
  return known.sessionId === sessionId ? known.version : undefined;
}

/** The rows; the one with the run's input gets the user who requested the run. */
function askedBy(drafts: readonly EntryDraft[], runId: string, by: string | undefined): readonly EntryDraft[] {
  return drafts.map((draft) => (draft.id === inputIdOf(runId) ? withAuthor(draft, by) : draft));
}

/** Whether a setup has texts that may come from the request of the run and not from its agent. */
function hasWordsOfRequest(draft: EntryDraft): boolean {
  return draft.type === "setup" && (draft.output !== undefined || draft.stop !== undefined);
}

function withAuthor(draft: EntryDraft, by: string | undefined): EntryDraft {
  return by === undefined ? draft : { ...draft, by };
}
