import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startProxy } from "../faults/tcp-proxy.mjs";

const stopMsMax = 60_000;
const rehireMs = 300;
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
 * @property {readonly import("../faults/tcp-proxy.mjs").TcpProxy[]} ways to the store and to the queue, where they can be cut
 */

/**
 * A fault injected into a worker.
 * @typedef {object} Strike
 * @property {number} atMs
 * @property {readonly string[]} runs those that it had then, and perhaps some that had just ended
 * @property {boolean} alone whether nobody else was frozen at that time
 */

/**
 * A delay of a worker's event loop.
 * @typedef {{ atMs: number, ms: number }} Lag
 */

/** Workers and servers on one store and one queue, each a process that may be killed, frozen and restarted. */
export class Fleet {
  /** @type {string[]} */
  wrong = [];
  /** Harm that was done to workers. @type {Strike[]} */
  strikes = [];
  /** The number of kills, freezes, restarts and cut connections. */
  counts = { kills: 0, freezes: 0, restarts: 0, cuts: 0 };
  /** @type {Lag[]} */
  lags = [];
  /** @type {Set<Member>} */
  #members = new Set();
  /** @type {Set<Promise<unknown>>} */
  #thaws = new Set();
  #args;
  #leaseMs;
  #apart;
  #stopped = false;

  /**
   * @param {string} address of the store
   * @param {string} queueUrl
   * @param {import("./fleet-member.mjs").Settings} settings
   * @param {boolean} [apart] whether each member has a way of its own to the store and to the queue, which can be cut
   */
  constructor(address, queueUrl, settings, apart = false) {
    this.#args = [address, queueUrl, JSON.stringify(settings)];
    this.#apart = apart;
    this.#leaseMs = settings.leaseMs;
  }

  /** @param {Record<Member["role"], number>} sizes */
  async start({ worker, server }) {
    const roles = /** @type {const} */ ([...Array(worker).fill("worker"), ...Array(server).fill("server")]);
    await Promise.all(roles.map((role) => this.#hire(role)));
  }

  /** The URL of a random server, which may be dead or frozen. */
  get url() {
    const urls = [...this.#members].flatMap(({ url, leaving }) => (url && !leaving ? url : []));
    return urls[Math.floor(Math.random() * urls.length)] ?? "http://127.0.0.1:1";
  }

  /** The number of workers that could claim a run now. */
  get workers() {
    return [...this.#members].filter((member) => member.role === "worker" && isAble(member)).length;
  }

  /**
   * Whether the member that listens there, if any, was told to end.
   * @param {string} url
   */
  isLeaving(url) {
    return [...this.#members].every((member) => member.url !== url || member.leaving);
  }

  /**
   * Kills a random one with SIGKILL, and starts another; false if there is none to kill.
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
   * Freezes a random one for longer than its leases, and resumes it; false if there is none to freeze.
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

  /**
   * Cuts a random one off from the store, the queue or both, silently or by refusing connections, and repairs that
   * after its leases have ended; false if there is none to cut off.
   * @param {Member["role"]} role
   */
  cut(role) {
    const member = this.#draw(role);
    if (member === null) return false;
    const [store, queue] = member.ways;
    const ways = [[store], [queue], [store, queue]][Math.floor(Math.random() * 3)] ?? [];
    // A member cut off from the queue only keeps its runs.
    if (ways[0] === store) this.#note(member);
    this.counts.cuts += 1;
    member.frozen = true;
    const isSilent = Math.random() < 0.5;
    const thaw = (async () => {
      for (const way of ways) await (isSilent ? way?.silence() : way?.refuse());
      await wait(this.#leaseMs + 500 + Math.random() * 1000);
      for (const way of ways) await way?.heal();
      // It must handle delayed input before it counts as recovered.
      await wait(this.#leaseMs);
      member.frozen = false;
    })().finally(() => this.#thaws.delete(thaw));
    this.#thaws.add(thaw);
    return true;
  }

  /**
   * Replaces all members one by one: each is ready before its predecessor is told to end. Yields after each member, so that the
   * caller can limit the time per member.
   */
  async *restart() {
    const old = [...this.#members];
    // The next one starts in the meantime: starting a process takes most of the time on a busy machine.
    let next = this.#hire(old[0]?.role ?? "worker");
    for (const [index, member] of old.entries()) {
      await next;
      const after = old[index + 1];
      if (after !== undefined) next = this.#hire(after.role);
      member.leaving = true;
      this.counts.restarts += 1;
      member.child.kill("SIGTERM");
      await this.#endAll([member]);
      yield;
    }
  }

  /** Kills all members at the same time. */
  async abort() {
    this.#stopped = true;
    const left = [...this.#members];
    for (const member of left) {
      member.leaving = true;
      member.child.kill("SIGKILL");
    }
    await Promise.all(left.map(ended));
  }

  /** Shuts all members down with SIGTERM. */
  async stop() {
    this.#stopped = true;
    await Promise.all(this.#thaws);
    const left = [...this.#members];
    for (const member of left) {
      member.leaving = true;
      // A member that is still starting has nothing to shut down.
      member.child.kill(member.url === null ? "SIGKILL" : "SIGTERM");
    }
    await this.#endAll(left);
  }

  /**
   * Waits for members that were told to end; one that does not end in time is killed and reported.
   * @param {readonly Member[]} members
   */
  async #endAll(members) {
    const timer = setTimeout(() => {
      for (const { role, child } of members.filter(isThere)) {
        this.wrong.push(`A ${role} did not come to an end.`);
        child.kill("SIGKILL");
      }
    }, stopMsMax);
    await Promise.all(members.map(ended));
    clearTimeout(timer);
  }

  /** The members that may be killed: never the last working one of a role. @param {Member["role"]} role */
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
    const [address = "", queueUrl = "", settings = ""] = this.#args;
    const ways = this.#apart ? await Promise.all([address, queueUrl].map((url) => startProxy(portOf(url)))) : [];
    if (this.#stopped) return void (await Promise.all(ways.map((way) => way.close())));
    const urls = [address, queueUrl].map((url, at) => ways[at]?.through(url) ?? url);
    const child = spawn(process.execPath, ["--no-warnings", program, role, ...urls, settings], {
      stdio: ["ignore", "pipe", this.#apart ? "ignore" : "inherit"],
    });
    /** @type {Member} */
    const member = { role, child, url: null, frozen: false, leaving: false, runs: new Set(), ways };
    this.#members.add(member);
    let inOrder = false;
    const lines = createInterface({ input: child.stdout });
    const ready = new Promise((resolve) => {
      lines.on("line", (line) => {
        const [word = "", rest = ""] = [line.split(" ", 1)[0], line.slice(line.indexOf(" ") + 1)];
        if (word === "at") this.#moved(rest, member);
        if (word === "lag" && !member.frozen) this.lags.push({ atMs: Date.now(), ms: Number(rest) });
        if (word === "wrong") this.wrong.push(`A ${role} said: ${rest}`);
        if (word === "end") inOrder = true;
        if (word !== "ready") return;
        member.url = rest;
        resolve(null);
      });
    });
    const closed = once(child, "close").then(([code, signal]) => {
      this.#members.delete(member);
      for (const way of ways) void way.close();
      // A member that starts while its servers are unreachable is started again, as a process supervisor does.
      const isEarly = this.#apart && member.url === null && !member.leaving;
      if (isEarly) void wait(rehireMs).then(async () => void (this.#stopped || (await this.#hire(role))));
      else if (signal !== "SIGKILL" && !(code === 0 && inOrder))
        this.wrong.push(`A ${role} ended with ${code ?? signal}.`);
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

/** @param {string} url */
function portOf(url) {
  return Number(new URL(url).port);
}

/** @param {Member} member */
function isAble({ url, frozen, leaving }) {
  return url !== null && !frozen && !leaving;
}

/** @param {Member} member */
function isThere({ child }) {
  return child.exitCode === null && child.signalCode === null;
}

/** @param {Member} member */
async function ended(member) {
  if (isThere(member)) await once(member.child, "close");
}
