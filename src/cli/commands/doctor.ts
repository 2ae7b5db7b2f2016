import { checkStore, type StoreReport } from "../../stores/check-store.ts";
import { type RepairReport, repairFile } from "../../stores/jsonl/index.ts";
import { listPages } from "../../stores/list-pages.ts";
import { SessionError, type SessionStore } from "../../index.ts";
import { type Command, type CommandContext, textOption, textsOption } from "../command.ts";
import { openExistingStore } from "../open-existing-store.ts";

/** Reads every log of a store and says what does not fit. */
export const doctor: Command = {
  summary: "Check that heads, indexes and checkpoints of a store are what its logs say.",
  usage: "doctor --store URL [--session ID]… [--json] [--repair]",
  help: [
    "--store URL    the store: jsonl:./directory, sqlite:./file.db, or the URL of a server",
    "--session ID   check only this session; may be given several times",
    "--json         print the report as JSON",
    "--repair       first repair damaged files (jsonl only); the bytes taken out are kept beside each file",
  ],
  options: {
    store: { type: "string" },
    session: { type: "string", multiple: true },
    json: { type: "boolean", default: false },
    repair: { type: "boolean", default: false },
  },
  async run(context) {
    const { values, fail } = context;
    const url = textOption(values, "store");
    if (url === undefined || context.positionals.length > 0) {
      fail("doctor needs --store and the URL of a store, and nothing else.");
      return 2;
    }
    const repairs = values["repair"] === true;
    if (repairs && !url.startsWith("jsonl:")) {
      fail("Only files can be repaired: --repair needs a jsonl: store.");
      return 2;
    }
    const repaired = repairs ? await repairAll(url, context) : [];
    await using store = await openExistingStore(url);
    const report = await check(store, context);
    if (values["json"] === true) context.printJson({ ...report, repaired });
    else print(report, repaired, context);
    return report.findings.length === 0 ? 0 : 1;
  },
};

async function check(store: SessionStore, { values, signal, progress }: CommandContext): Promise<StoreReport> {
  const sessions = textsOption(values, "session");
  return checkStore(store, {
    signal,
    ...(sessions.length > 0 && { sessions }),
    onProgress: ({ sessionsDone, sessionsTotal, findings }) =>
      progress(`${sessionsDone} of ${sessionsTotal} sessions checked, ${findings} findings`),
  });
}

/** Repairs every file that cannot be read, and says why where it cannot be repaired. */
async function repairAll(url: string, { fail, signal }: CommandContext): Promise<RepairReport[]> {
  const repaired: RepairReport[] = [];
  await using store = await openExistingStore(url);
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
    const kept = sideFile === null ? "" : ` What was taken out is in ${sideFile}.`;
    line(`repaired: ${path}, in ${damage.length} places.${kept}`);
  }
  for (const { sessionId, kind, message } of report.findings) line(`${kind}: ${sessionId ?? "(store)"}: ${message}`);
  const result = report.findings.length === 0 ? "nothing is wrong" : `${report.findings.length} findings`;
  line(`${report.sessions} sessions with ${report.entries} entries: ${result}.`);
}
