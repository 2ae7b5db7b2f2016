import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { skipBecause } from "../../test/skip.ts";
import { hasEnded, parseProcessIdentity, type ProcessIdentity, thisProcess } from "./process-identity.ts";

/** Another process that runs until it is killed. */
async function startOther(): Promise<{ readonly identity: ProcessIdentity; kill(): Promise<void> }> {
  const child = spawn(process.execPath, ["--eval", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  const closed = once(child, "close");
  return {
    identity: { ...thisProcess, pid: child.pid as number, startedAt: null },
    kill: async () => {
      child.kill("SIGKILL");
      await closed;
    },
  };
}

test("hasEnded is false for a live process, and true after it was killed", async () => {
  const { identity, kill } = await startOther();
  expect(hasEnded(identity)).toBe(false);
  expect(hasEnded(thisProcess)).toBe(false);
  await kill();
  expect(hasEnded(identity)).toBe(true);
});

test("a process whose pid was reused by another one has ended", (context) => {
  if (thisProcess.startedAt === null) return skipBecause(context, "this system does not say when a process began");
  expect(hasEnded({ ...thisProcess, startedAt: `${thisProcess.startedAt}0` })).toBe(true);
  expect(hasEnded({ ...thisProcess, pid: process.ppid, startedAt: null })).toBe(false);
});

test("hasEnded is false for a process of another machine or container", async () => {
  const { identity, kill } = await startOther();
  await kill();
  expect(hasEnded({ ...identity, space: "elsewhere" })).toBe(false);
  expect(hasEnded({ ...identity, space: null })).toBe(false);
});

test("a zombie process has ended", async (context) => {
  if (!existsSync("/proc/self/stat")) return skipBecause(context, "there is no /proc here");
  const parent = spawn("sh", ["-c", "sleep 0.1 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void parent.kill("SIGKILL"));
  const [line] = (await once(parent.stdout.setEncoding("utf8"), "data")) as [string];
  const stat = readFileSync(`/proc/${Number(line)}/stat`, "latin1");
  const ticks = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  const identity = {
    ...thisProcess,
    pid: Number(line),
    startedAt: thisProcess.startedAt?.replace(/\d+$/, `${ticks}`) ?? "",
  };
  await expect.poll(() => hasEnded(identity), { interval: 5 }).toBe(true);
});

test("parseProcessIdentity returns null for an invalid text", () => {
  expect(parseProcessIdentity(JSON.stringify(thisProcess))).toEqual(thisProcess);
  for (const text of [null, undefined, "", "{}", "null", '{"pid":0,"space":"a"}', '{"pid":7,"space":null}', "[7]"]) {
    expect(parseProcessIdentity(text)).toBeNull();
  }
});
