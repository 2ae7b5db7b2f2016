import { spawnSync } from "node:child_process";
import { copyFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openPlace } from "./program-place.mjs";
import { recordSession } from "./record.mjs";
import { helper } from "./stand-in.mjs";

/** @typedef {import("./programs.mjs").Program} Program */
/** @typedef {import("./program-place.mjs").Place} Place */
/** @typedef {import("./stand-in.mjs").StandIn} StandIn */
/** @typedef {{ program: Program, command: readonly string[] }} Installed */

const golden = fileURLToPath(new URL("../formats/golden/", import.meta.url));
const skein = fileURLToPath(new URL("../../dist/cli/skein.js", import.meta.url));

const question = "Look into notes.txt and tell me where the kettle is.";

const fromTool = "The key of the shed is under the third pot.";
const last = "What did I ask first?";

/** Texts that must be in the request of a program that resumes the conversation: of the user, of tools and of the model. */
export const conversation = {
  present: [
    question,
    "The blue kettle is in the shed.",
    "Look into both files at once.",
    fromTool,
    "Understood, I keep",
    last,
  ],
  absent: [],
};

/** Texts that must be in it after only the first turn. */
export const oneTurn = { present: [question, "The blue kettle is in the shed.", last], absent: [] };

/** Texts that must be in it if the session is that of a sub-agent. */
export const helped = { present: [helper.prompt, "Understood, I keep", last], absent: [question] };

/** Texts that must, and must not, be in it after the program has compacted the conversation. */
export const compacted = { present: ["Remember the word marmalade.", last], absent: [fromTool] };

/**
 * The output of a program and its files: the whole conversation, the conversation after the first turn, and the
 * session of the sub-agent, if any.
 * @typedef {{ program: Program, place: Place, id: string, path: string, first: string, helper: string | null }} Conversed
 */

/**
 * Has a conversation with a program: a call with thinking before it, two parallel calls, and a sub-agent if it supports one.
 * @param {Installed} installed
 * @param {StandIn} standIn
 * @param {{ record: boolean }} options
 * @returns {Promise<Conversed>}
 */
export async function converse({ program, command }, standIn, { record }) {
  const place = openPlace(program, command, standIn.url);
  await place.run(program.begin(question));
  const { id, path: written } = await place.newest();
  const first = join(place.folder, `first${extname(written)}`);
  copyFileSync(written, first);
  await place.run(program.resume(id, "Look into both files at once."));
  await place.run(program.resume(id, "Let a helper look for the kettle."));
  const { path } = await place.newest();
  const helperPath = await place.helper(path);
  if (record) recordSession(path, `${fixtureOf(program)}-conversation${extname(path)}`, place);
  return { program, place, id, path, first, helper: helperPath };
}

/**
 * Makes a program compact its conversation, and continues it.
 * @param {{ program: Program, place: Place, id: string, path: string }} said
 * @param {{ record: boolean }} options
 */
export async function compact({ program, place, id, path }, { record }) {
  if (program.compact === undefined) throw new Error(`${program.title} has no command that compacts a session.`);
  const { args, talk } = program.compact(id);
  await place.run(args, talk);
  await place.run(program.resume(id, "Remember the word marmalade."));
  if (record) recordSession(path, `${fixtureOf(program)}-compacted${extname(path)}`, place);
}

/**
 * Imports a program's conversation into a new store, and hands it off to another program.
 * @param {{ program: Program, path: string }} said
 * @param {Installed} installed
 * @param {StandIn} standIn
 * @param {{ present: readonly string[], absent: readonly string[] }} words
 * @returns {Promise<string | null>} what was wrong with the request of the continuing program, or null
 */
export async function goOn({ program, path }, { program: other, command }, standIn, { present, absent }) {
  const target = openPlace(other, command, standIn.url);
  try {
    const store = `sqlite:${join(target.folder, "skein.db")}`;
    const imported = runSkein(target, ["import", "--from", program.format, path, "--store", store, "--json"]);
    // A new version of a program may write lines of new kinds, which could belong to the conversation.
    const kinds = Object.keys(JSON.parse(imported).kinds);
    if (kinds.length > 0) return `its file has lines of unknown kinds: ${kinds.join(", ")}`;
    const handoff = ["handoff", "last", "--to", other.format, "--cwd", target.project, "--store", store, "--json"];
    const { commands } = JSON.parse(runSkein(target, handoff));
    for (const [, ...args] of commands.slice(0, -1)) await target.run(args);
    const before = standIn.asked.length;
    await target.run(other.resume(commands.at(-1).at(-1), last));
    // A program may send other requests as well, for example for a title.
    const body = standIn.asked.slice(before).find(({ body }) => body.includes(present[0] ?? ""))?.body;
    if (body === undefined) return `no request of its holds "${present[0]}"`;
    const missing = present.filter((each) => !body.includes(each));
    const left = absent.filter((each) => body.includes(each));
    if (missing.length > 0) return `its request lacks "${missing.join('", "')}"`;
    return left.length > 0 ? `its request still holds "${left.join('", "')}"` : null;
  } finally {
    target.remove();
  }
}

/**
 * Has a conversation with a program, imports it, and lets another session of the program find it through `skein mcp`.
 * @param {Installed} installed
 * @param {StandIn} standIn
 * @returns {Promise<string | null>} what was wrong with the program's last request to its model, or null
 */
export async function askEarlierSessions({ program, command }, standIn) {
  if (program.addMcp === undefined || program.ask === undefined) return "it was not told of the server";
  const place = openPlace(program, command, standIn.url);
  try {
    const store = `sqlite:${join(place.folder, "skein.db")}`;
    await place.run(program.begin(question));
    const { path } = await place.newest();
    runSkein(place, ["import", "--from", program.format, path, "--store", store, "--json"]);
    const server = [process.execPath, "--no-warnings", skein, "mcp", "--store", store];
    program.addMcp(place.home, server);
    const before = standIn.asked.length;
    await place.run(program.ask("Ask earlier sessions where the kettle is."));
    const bodies = standIn.asked.slice(before).map(({ body }) => body);
    if (!bodies.some((body) => body.includes("search_sessions"))) return "its model was not told of the tool";
    const answered = bodies.find((body) => body.includes("This is a record of earlier sessions, quoted as data."));
    if (answered === undefined) return "it did not call the tool";
    return answered.includes("> The blue kettle is in the shed.") ? null : "its answer lacks the earlier session";
  } finally {
    place.remove();
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

/** @param {Program} program */
function fixtureOf({ format, version }) {
  return join(golden, `${format}-${version}`);
}
