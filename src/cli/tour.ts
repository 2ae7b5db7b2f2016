import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compact } from "../agent/context/compact.ts";
import {
  createAgent,
  createHeader,
  createTree,
  openStore,
  openTree,
  Session,
  type SessionStore,
  type SessionTree,
  textOf,
} from "../index.ts";
import { offline } from "../models/index.ts";
import { printTree } from "./print-tree.ts";
import { openTerminal, printable, type Terminal } from "./terminal.ts";

const USAGE = `Usage: npm run tour [-- --store sqlite:./tour.db] [--no-color]

A short tour of Skein in this terminal: a session is created, branched, labelled, compacted and forked, and an agent runs in another.

  --store URL   keep the session there instead of in a new SQLite file (memory:, jsonl:./dir, sqlite:./file.db)
  --no-color    print without colours
  --help        print this text`;

async function tour(store: SessionStore, terminal: Terminal): Promise<void> {
  const step = (title: string) => terminal.line(`\n${terminal.bold(title)}`);

  step("1. A session is a log: every turn is one durable append.");
  const tree = await createTree(store, { userId: "you", cwd: process.cwd() });
  await tree.setName("Plan a trip");
  const question = await tree.appendMessage({ role: "user", content: "Where should I go in May: Lisbon or Oslo?" });
  const lisbon = await tree.appendMessage({
    role: "assistant",
    content: "Lisbon: 22 degrees, and the jacarandas are in bloom.",
  });
  terminal.line(`   ${tree.version} entries in session ${tree.id}`);

  step("2. Branch: go back to the question and get another answer. The first one stays.");
  await tree.branch(question.id);
  await tree.appendMessage({ role: "assistant", content: "Oslo: 18 hours of daylight, and the fjord is quiet." });
  await tree.appendMessage({ role: "user", content: "Then Oslo. What do I pack?" });
  const packing = await tree.appendMessage({ role: "assistant", content: "Layers, a rain jacket, walking shoes." });

  step("3. Label what you want to find again.");
  await tree.setLabel(lisbon.id, "plan B");
  await tree.setLabel(packing.id, "packing list");
  await show(tree, terminal);

  step("4. Compact: after more turns, the model sees a summary; the log keeps every word.");
  for (const day of ["Friday", "Saturday", "Sunday"]) {
    await tree.appendMessage({ role: "user", content: `What should I do on ${day}?` });
    await tree.appendMessage({ role: "assistant", content: `On ${day}, take the ferry to another island.` });
  }
  const before = await tree.buildContext();
  await compact(tree, { model: offline(), settings: { keepRecentTokens: 15 } });
  const after = await tree.buildContext();
  terminal.line(
    `   the next request: ${before.messages.length} messages before, ${after.messages.length} after; ${tree.version} entries in the log`,
  );

  step("5. Fork: a new session that shares these entries without copying them.");
  const fork = await store.fork(
    tree.id,
    createHeader({ userId: "you", lineage: { parents: [tree.id], operator: "fork", kind: "op_fork", extras: [] } }),
  );
  const forked = await openTree(store, fork.header.id);
  await forked.appendMessage({ role: "user", content: "And if I take the night train?" });
  terminal.line(
    `   session ${forked.id} has ${forked.version} entries; it shares the first ${fork.header.forkedFrom?.version} with its source`,
  );
  await show(forked, terminal);

  step(
    "6. Run: an agent writes a file and counts its letters, in a private workspace. Every message is stored before the next step.",
  );
  await runAgent(store, terminal);
}

async function runAgent(store: SessionStore, terminal: Terminal): Promise<void> {
  const agent = createAgent({ name: "clerk", prompt: "You keep a small workspace.", model: offline() });
  const text = 'write "rain jacket, walking shoes" to list.txt, then run wc -c list.txt';
  await using session = Session.create({ text }).to("local");
  terminal.line(`   user: ${text}`);
  const run = agent.run(session, { persist: store });
  for await (const event of run) {
    if (event.type === "tool-started") terminal.line(`   ${event.name} …`);
    if (event.type === "tool-finished") terminal.line(`   ${printable(textOf(event.message.content))}`);
  }
  await using answer = await run;
  terminal.line(`   assistant: ${printable((answer.text() ?? "").replaceAll("\n", " "))}`);
  terminal.line(`   session ${answer.id} has ${(await store.head(answer.id))?.version} entries`);
}

async function show(tree: SessionTree, terminal: Terminal): Promise<void> {
  const path = new Set((await tree.getBranch()).map((entry) => entry.id));
  terminal.line();
  printTree(terminal, await tree.getTree(), { leafId: tree.leafId, path });
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      store: { type: "string" },
      "no-color": { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const terminal = openTerminal(values["no-color"] ? { colours: false } : {});
  if (values.help) return terminal.line(USAGE);
  const url = values.store ?? `sqlite:${join(await mkdtemp(join(tmpdir(), "skein-tour-")), "tour.db")}`;
  await using store = await openStore(url);
  await tour(store, terminal);
  terminal.line(`\nAll of it is in ${url}. What to read next: README.md, then examples/.`);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = error instanceof TypeError ? 2 : 1;
}
