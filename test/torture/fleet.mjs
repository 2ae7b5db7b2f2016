import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const stopMsMax = 60_000;
const program = fileURLToPath(new URL("./fleet-member.mjs", import.meta.url));

/**
 * A process of a fleet.
 * @typedef {object} Member
 * @property {"worker" | "server"} role
 * @property {import("node:child_process").ChildProcess} child
 * @property {string | null} url null until it is ready; empty for a worker
 * @property {boolean} frozen
 * @property {boolean} leaving killed, or told to end
 * @property {Set<string>} runs those of which it took the latest step that was told
 */

/**
 * Harm that was done to a worker.
 * @typedef {object} Strike
 * @property {number} atMs
 * @property {readonly string[]} runs those that it had then, and perhaps some that had just ended
 * @property {boolean} alone whether nobody else was frozen at that time
 */

/** Workers and servers on one store and one bell, each a process that may be killed, frozen and restarted. */
export class Fleet {
  /** @type {string[]} */
  wrong = [];
  /** Harm that was done to workers. @type {Strike[]} */
  strikes = [];
  /** How often anyone was killed, frozen, restarted. */
  counts = { kills: 0, freezes: 0, restarts: 0 };
  /** @type {Set<Member>} */
  #members = new Set();
  /** @type {Set<Promise<unknown>>} */
  #thaws = new Set();
  #args;
  #leaseMs;

  /**
   * @param {string} address of the store
   * @param {string} bellUrl
   * @param {import("./fleet-member.mjs").Settings} settings
   */
  constructor(address, bellUrl, settings) {
    this.#args = [address, bellUrl, JSON.stringify(settings)];
    this.#leaseMs = settings.leaseMs;
  }

  /** @param {Record<Member["role"], number>} sizes */
  async start({ worker, server }) {
    const roles = /** @type {const} */ ([...Array(worker).fill("worker"), ...Array(server).fill("server")]);
    await Promise.all(roles.map((role) => this.#hire(role)));
  }

  /** Where a random one of the servers listens; it may have died since, and it may be frozen. */
  get url() {
    const urls = [...this.#members].flatMap(({ url, leaving }) => (url && !leaving ? url : []));
    return urls[Math.floor(Math.random() * urls.length)] ?? "http://127.0.0.1:1";
  }

  /**
   * Whether who listens there, if anyone still does, was told to end.
   * @param {string} url
   */
  isLeaving(url) {
    return [...this.#members].every((member) => member.url !== url || member.leaving);
  }

  /**
   * Kills a random one as a power cut would, and hires another; false while there is nobody to kill.
   * @param {Member["role"]} role
   */
  kill(role) {
    const member = this.#draw(role);
    if (member === null) return false;
    this.#note(member);
    this.counts.kills += 1;
    member.leaving = true;
    member.child.kill("SIGKILL");
    void this.#hire(role);
    return true;
  }

  /**
   * Freezes a random one for longer than its leases hold, and lets it go on; false while there is nobody to freeze.
   * @param {Member["role"]} role
   */
  freeze(role) {
    const member = this.#draw(role);
    if (member === null) return false;
    this.#note(member);
    this.counts.freezes += 1;
    member.frozen = true;
    member.child.kill("SIGSTOP");
    const thaw = wait(this.#leaseMs + 500 + Math.random() * 1000).then(() => {
      member.child.kill("SIGCONT");
      member.frozen = false;
      this.#thaws.delete(thaw);
    });
    this.#thaws.add(thaw);
    return true;
  }

  /** Replaces everybody one by one, each in order: the next one is there before the last one goes. */
  async restart() {
    for (const member of [...this.#members]) {
      await this.#hire(member.role);
      member.leaving = true;
      this.counts.restarts += 1;
      member.child.kill("SIGTERM");
      await ended(member);
    }
  }

  async stop() {
    await Promise.all(this.#thaws);
    const left = [...this.#members];
    for (const member of left) {
      member.leaving = true;
      // Who is only about to begin has nothing to end in order.
      member.child.kill(member.url === null ? "SIGKILL" : "SIGTERM");
    }
    const timer = setTimeout(() => {
      for (const { role, child } of this.#members) {
        this.wrong.push(`A ${role} did not come to an end.`);
        child.kill("SIGKILL");
      }
    }, stopMsMax);
    await Promise.all(left.map(ended));
    clearTimeout(timer);
  }

  /** Those who may be struck: never the last one of a role that works. @param {Member["role"]} role */
  #draw(role) {
    const able = [...this.#members].filter((member) => member.role === role && isAble(member));
    return able.length < 2 ? null : (able[Math.floor(Math.random() * able.length)] ?? null);
  }

  /** @param {Member} member */
  #note({ role, runs }) {
    if (role !== "worker") return;
    this.strikes.push({ atMs: Date.now(), runs: [...runs], alone: [...this.#members].every(({ frozen }) => !frozen) });
  }

  /**
   * Resolves when it is ready, or has ended before.
   * @param {Member["role"]} role
   */
  async #hire(role) {
    const child = spawn(process.execPath, ["--no-warnings", program, role, ...this.#args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    /** @type {Member} */
    const member = { role, child, url: null, frozen: false, leaving: false, runs: new Set() };
    this.#members.add(member);
    let inOrder = false;
    const lines = createInterface({ input: child.stdout });
    const ready = new Promise((resolve) => {
      lines.on("line", (line) => {
        const [word = "", rest = ""] = [line.split(" ", 1)[0], line.slice(line.indexOf(" ") + 1)];
        if (word === "at") this.#moved(rest, member);
        if (word === "wrong") this.wrong.push(`A ${role} said: ${rest}`);
        if (word === "end") inOrder = true;
        if (word !== "ready") return;
        member.url = rest;
        resolve(null);
      });
    });
    const closed = once(child, "close").then(([code, signal]) => {
      this.#members.delete(member);
      if (signal !== "SIGKILL" && !(code === 0 && inOrder)) this.wrong.push(`A ${role} ended with ${code ?? signal}.`);
    });
    await Promise.race([ready, closed]);
  }

  /**
   * @param {string} runId
   * @param {Member} holder
   */
  #moved(runId, holder) {
    for (const { runs } of this.#members) runs.delete(runId);
    holder.runs.add(runId);
  }
}

/** @param {Member} member */
function isAble({ url, frozen, leaving }) {
  return url !== null && !frozen && !leaving;
}

/** @param {Member} member */
async function ended({ child }) {
  if (child.exitCode === null && child.signalCode === null) await once(child, "close");
}
