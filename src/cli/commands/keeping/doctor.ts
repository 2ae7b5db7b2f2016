import { counted } from "../../terminal.ts";
import { checkStore, type StoreReport } from "../../../stores/doctor/check-store.ts";
import type { StoreFinding } from "../../../stores/doctor/store-finding.ts";
import { defaultStoreUrl } from "../../../tree/home.ts";
import { type RepairReport, repairFile } from "../../../stores/jsonl/index.ts";
import { listPages } from "../../../stores/complete/list-pages.ts";
import { SessionError, type SessionStore } from "../../../index.ts";
import { type Command, type CommandContext, textsOption } from "../../command.ts";
import { sandboxBackend } from "../../../session/sandbox/sandbox-backends.ts";
import { canonicalJson } from "../../../stores/doctor/log-digest.ts";

/** Checks that everything in a store agrees with its logs. */
export const doctor: Command = {
  name: "doctor",
  summary: "Examine a store: do its heads, indexes and checkpoints agree with its logs?",
  arguments: [],
  options: {
    session: { value: "ID", repeated: true, what: "examine only this session" },
    snapshots: {
      what: "also list snapshots on this machine that no checkpoint of the store refers to (always for the default store)",
    },
    repair: { what: "repair damaged files first (jsonl only); removed bytes are saved in a file beside each" },
  },
  examples: [
    { line: "skein doctor", what: "examine the default store" },
    { line: "skein doctor --store jsonl:./sessions --repair", what: "repair files damaged by a crash or a disk" },
  ],
  json: {
    sessions: "the number of sessions that were read",
    entries: "the number of their entries",
    findings: "the problems: sessionId, kind, message",
    repaired: "the files that were repaired: path, damage, sideFile",
  },
  store: "existing",
  readsOnly: true,
  async run(context) {
    const { storeUrl: url } = context;
    const repairs = context.values["repair"] === true;
    if (repairs && !url.startsWith("jsonl:")) {
      throw new SessionError("INVALID_OPTION", "Only files can be repaired: --repair needs a jsonl: store.");
    }
    const repaired = repairs ? await repairAll(context) : [];
    await using store = await context.openStore();
    const report = await check(store, context);
    const looks = context.values["snapshots"] === true || (url === defaultStoreUrl() && allSessions(context));
    const findings = [...report.findings, ...(looks ? await snapshotFindings(store) : [])];
    if (context.json) context.printJson({ ...report, findings, repaired });
    else print({ ...report, findings }, repaired, context);
    return findings.length === 0 ? 0 : 1;
  },
};

function allSessions({ values }: CommandContext): boolean {
  return textsOption(values, "session").length === 0;
}

async function snapshotFindings(store: SessionStore): Promise<readonly StoreFinding[]> {
  return (await unheldSnapshots(store)).map((name) => ({
    sessionId: null,
    kind: "leftover",
    message: `Snapshot ${name} on this machine is not referred to by any checkpoint of this store.`,
  }));
}

async function check(store: SessionStore, { values, signal, progress }: CommandContext): Promise<StoreReport> {
  const sessions = textsOption(values, "session");
  return checkStore(store, {
    signal,
    ...(sessions.length > 0 && { sessions }),
    onProgress: ({ sessionsDone, sessionsTotal, findings }) =>
      progress(`${sessionsDone} of ${sessionsTotal} sessions checked, ${findings} findings`),
  });
}

/** Repairs every damaged file; prints the reason for each file that cannot be repaired. */
async function repairAll({ fail, signal, openStore }: CommandContext): Promise<RepairReport[]> {
  const repaired: RepairReport[] = [];
  await using store = await openStore();
  for await (const { damaged } of listPages(store)) {
    for (const { path } of damaged) {
      signal.throwIfAborted();
      try {
        repaired.push(await repairFile(path));
      } catch (error) {
        if (!(error instanceof SessionError)) throw error;
        fail(`${path} was not repaired: ${error.message}`);
      }
    }
  }
  return repaired;
}

function print(report: StoreReport, repaired: readonly RepairReport[], { print: line }: CommandContext): void {
  for (const { path, damage, sideFile } of repaired) {
    const kept = sideFile === null ? "" : ` The removed bytes are in ${sideFile}.`;
    line(`repaired: ${path}, in ${damage.length} places.${kept}`);
  }
  for (const { sessionId, kind, message } of report.findings) line(`${kind}: ${sessionId ?? "(store)"}: ${message}`);
  const result =
    report.findings.length === 0 ? "no problem found" : counted(report.findings.length, "finding", "findings");
  line(
    `${counted(report.sessions, "session", "sessions")} with ${counted(report.entries, "entry", "entries")}: ${result}.`,
  );
}

/**
 * The names of local snapshots that no checkpoint of a store refers to. This includes snapshots of other stores on this
 * machine, and those of deleted sessions, whose checkpoints cannot be listed.
 */
async function unheldSnapshots(store: SessionStore): Promise<readonly string[]> {
  const held = new Set<string>();
  for await (const { items } of listPages(store)) {
    for (const { header } of items)
      for (const { sandboxSnapshot } of await store.listCheckpoints(header.id))
        if (sandboxSnapshot !== undefined) held.add(canonicalJson(sandboxSnapshot));
  }
  const local = await sandboxBackend("local");
  const snapshots = (await local.listSnapshots?.()) ?? [];
  return snapshots.flatMap((snapshot) =>
    held.has(canonicalJson({ backend: "local", snapshot })) ? [] : String(snapshot["id"]),
  );
}
