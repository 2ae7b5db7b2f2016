import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../faults/programs/write.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
const progressMsMax = 60_000;
const stopMsMax = 60_000;

/**
 * A process that writes.
 * @typedef {object} Writer
 * @property {import("node:child_process").ChildProcess} child
 * @property {number} done how many appends were acknowledged
 * @property {boolean} killed
 * @property {Promise<unknown>} ended
 */

/** Processes that append to the same sessions and may be killed; a ledger records their output. */
export class Crew {
  /** @type {Set<Writer>} */
  #writers = new Set();
  #hired = 0;
  #work;

  /**
   * @param {object} work
   * @param {import("./ledger.mjs").Ledger} work.ledger
   * @param {string} work.address of the store
   * @param {readonly string[]} work.sessions
   * @param {number} work.inFlight how many appends each has under way at once
   * @param {number} [work.appends] how many each makes, unless it is told to stop before
   */
  constructor(work) {
    this.#work = work;
    if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  }

  /** @param {number} count */
  hire(count) {
    for (let i = 0; i < count; i++) this.#hireOne();
  }

  /** Kills a random writing process with SIGKILL and starts another one. Returns false if fewer than two processes write. */
  killOne() {
    const writing = [...this.#writers].filter(({ done, killed }) => done > 0 && !killed);
    const writer = writing[Math.floor(Math.random() * writing.length)];
    // One process must remain that writes while the new one starts.
    if (writer === undefined || writing.length < 2) return false;
    writer.killed = true;
    writer.child.kill("SIGKILL");
    this.#hireOne();
    return true;
  }

  /** Resolves when every writer has had an append acknowledged since this call; otherwise reports a violation after a time limit. */
  async progress() {
    const before = [...this.#writers].map((writer) => ({ writer, done: writer.done }));
    const end = Date.now() + progressMsMax;
    while (before.some(({ writer, done }) => !writer.killed && writer.done === done && this.#writers.has(writer))) {
      if (Date.now() > end) return void this.#work.ledger.wrong.push("A writer did not go on.");
      await wait(5);
    }
  }

  /** Resolves once all have ended by themselves. */
  async ended() {
    while (this.#writers.size > 0) await Promise.all([...this.#writers].map(({ ended }) => ended));
  }

  /** Lets all processes finish the work in progress, and kills those that do not. */
  async stop() {
    for (const { child } of this.#writers) child.stdin?.end();
    const timer = setTimeout(() => {
      for (const writer of this.#writers) {
        this.#work.ledger.wrong.push("A writer did not come to an end.");
        writer.killed = true;
        writer.child.kill("SIGKILL");
      }
    }, stopMsMax);
    await this.ended();
    clearTimeout(timer);
  }

  #hireOne() {
    const { address, sessions, inFlight, appends = 1e9, ledger } = this.#work;
    const args = [address, sessions.join(","), `w${this.#hired++}`, String(appends), String(inFlight)];
    const child = spawn(process.execPath, ["--no-warnings", program, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    // Killed processes are told to stop as well.
    child.stdin.on("error", () => {});
    /** @type {Writer} */
    const writer = { child, done: 0, killed: false, ended: once(child, "close") };
    let rest = "";
    child.stdout.on("data", (/** @type {Buffer} */ data) => {
      const lines = (rest + data.toString()).split("\n");
      // A line that a kill cut short does not count.
      rest = lines.pop() ?? "";
      for (const line of lines) {
        ledger.note(line);
        if (line.startsWith("done ")) writer.done += 1;
      }
    });
    child.once("close", (code) => {
      this.#writers.delete(writer);
      if (code !== 0 && !writer.killed) ledger.wrong.push(`A writer ended by itself with code ${code}.`);
    });
    this.#writers.add(writer);
  }
}
