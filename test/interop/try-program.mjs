import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openPlace } from "./program-place.mjs";
import { recordSession } from "./record.mjs";

/** @typedef {import("./programs.mjs").Program} Program */
/** @typedef {import("./program-place.mjs").Place} Place */
/** @typedef {import("./stand-in.mjs").StandIn} StandIn */
/** @typedef {{ program: Program, command: readonly string[] }} Installed */

const golden = fileURLToPath(new URL("../formats/golden/", import.meta.url));
const skein = fileURLToPath(new URL("../../dist/cli/skein.js", import.meta.url));

const question = "Look into notes.txt and tell me where the kettle is.";

/** What must be in the request of a program that goes on with the conversation: words of the user, of tools and of the model. */
const words = [
  question,
  "The blue kettle is in the shed.",
  "Look into both files at once.",
  "The key of the shed is under the third pot.",
  "Understood, I keep that in mind.",
  "What did I ask first?",
];

/**
 * Has a conversation with a program: a call with thoughts before it, two calls at once, and a sub-agent where it has any.
 * @param {Installed} installed
 * @param {StandIn} standIn
 * @param {{ record: boolean }} options
 * @returns {Promise<{ program: Program, place: Place, path: string }>}
 */
export async function converse({ program, command }, standIn, { record }) {
  const place = openPlace(program, command, standIn.url);
  await place.run(program.begin(question));
  const { id } = await place.newest();
  await place.run(program.resume(id, "Look into both files at once."));
  await place.run(program.resume(id, "Let a helper look for the kettle."));
  const { path } = await place.newest();
  if (record) await keep(program, place, id, path);
  return { program, place, path };
}

/**
 * Imports a program's conversation into a store of its own, and hands it to a program that has never heard of it.
 * @param {{ program: Program, path: string }} said
 * @param {Installed} installed
 * @param {StandIn} standIn
 * @returns {Promise<string | null>} what was missing from the request of the program that went on, or null
 */
export async function goOn({ program, path }, { program: other, command }, standIn) {
  const target = openPlace(other, command, standIn.url);
  try {
    const store = `sqlite:${join(target.folder, "skein.db")}`;
    runSkein(target, ["import", "--from", program.format, path, "--store", store, "--json"]);
    const handoff = ["handoff", "last", "--to", other.format, "--cwd", target.project, "--store", store, "--json"];
    const { commands } = JSON.parse(runSkein(target, handoff));
    for (const [, ...args] of commands.slice(0, -1)) await target.run(args);
    const before = standIn.asked.length;
    await target.run(other.resume(commands.at(-1).at(-1), "What did I ask first?"));
    const bodies = standIn.asked.slice(before).map(({ body }) => body);
    const missing = bodies.map((body) => words.filter((each) => !body.includes(each)));
    const fewest = missing.sort((a, b) => a.length - b.length)[0];
    if (fewest === undefined) return "it asked nothing";
    return fewest.length === 0 ? null : `its request lacks "${fewest.join('", "')}"`;
  } finally {
    target.remove();
  }
}

/**
 * @param {Place} place
 * @param {readonly string[]} args
 */
function runSkein({ home, project }, args) {
  const env = { PATH: process.env.PATH, HOME: home };
  const { status, stdout, stderr } = spawnSync(process.execPath, [skein, ...args], {
    cwd: project,
    env,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`skein ${args[0]} ended with ${status}: ${stderr}`);
  return stdout;
}

/**
 * Keeps the conversation as a fixture, and what becomes of it by a compaction.
 * @param {Program} program
 * @param {Place} place
 * @param {string} id
 * @param {string} path
 */
async function keep(program, place, id, path) {
  const fixtures = join(golden, `${program.format}-${program.version}`);
  recordSession(path, `${fixtures}-conversation${path.endsWith(".json") ? ".json" : ".jsonl"}`, place);
  if (program.compact === undefined) return;
  const { args, talk } = program.compact(id);
  await place.run(args, talk);
  await place.run(program.resume(id, "Remember the word marmalade."));
  recordSession((await place.newest()).path, `${fixtures}-compacted.jsonl`, place);
}
