import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { localBackend, type Sandbox } from "skein/sandbox";
import { formatCount, formatMs } from "../format.ts";
import { messageText } from "../message-of.ts";
import { type Contender, race, type Sample } from "../race.ts";
import type { Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { medianMs, timeRatio } from "../statistics.ts";

const section = "sandboxes";
const COMMANDS = 5;

type Name = "bare" | "off" | "isolated";

/** The cost of a command with and without isolation, and of restoring files. */
export const sandboxSection: Section = {
  name: section,
  async run(bench) {
    return [...(await commandRows(bench)), await restoreRow(bench)];
  },
};

/** A command that does nothing, compared with starting the same program directly. */
async function commandRows(bench: Bench): Promise<Row[]> {
  bench.progress("sandboxes: commands");
  const workingDir = await bench.fixtures.folder("sandbox-commands");
  const { isolated } = (await localBackend.reach?.({ workingDir })) ?? { isolated: false };
  const contenderOf = (sandbox: Sandbox): Contender =>
    times(async () => {
      await sandbox.exec(["true"]);
    });
  const free = await localBackend.open({ workingDir, isolation: "off" });
  const apart = isolated ? await localBackend.open({ workingDir, isolation: "required" }) : null;
  const bare = times(async () => {
    await once(spawn("true", { cwd: workingDir, stdio: "ignore" }), "exit");
  });
  const contenders = { bare, off: contenderOf(free), ...(apart === null ? {} : { isolated: contenderOf(apart) }) };
  const samples: Partial<Record<Name, readonly Sample[]>> = await race<Name>(
    contenders as Record<Name, Contender>,
    bench.sizes,
  );
  await Promise.all([free.close(), apart?.close()]);
  const rowOf = (what: string, name: Name, against: Name, title: string): Row => {
    const [measured, other] = [samples[name], samples[against]];
    if (measured === undefined || other === undefined)
      return { section, what, measured: "bubblewrap does not work here" };
    return {
      section,
      what,
      measured: formatMs(medianMs(measured) / COMMANDS),
      against: `${formatMs(medianMs(other) / COMMANDS)} ${title}`,
      ratio: timeRatio(measured, other),
    };
  };
  return [
    rowOf("a command with limits, not isolated", "off", "bare", "started by hand"),
    rowOf("a command with limits, isolated", "isolated", "off", "not isolated"),
  ];
}

/** Restoring files from a snapshot, compared with copying them. */
async function restoreRow(bench: Bench): Promise<Row> {
  const files = bench.sizes.checkpoints * 10;
  bench.progress(`sandboxes: restore of ${files} files`);
  const workingDir = await bench.fixtures.folder("sandbox-restore");
  // Snapshots are stored below it; a section has its own process, so the variable affects no other.
  process.env["SKEIN_HOME"] = await bench.fixtures.folder("sandbox-home");
  for (let index = 0; index < files; index++) {
    const directory = join(workingDir, `d${index % 20}`);
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, `f${index}`), messageText(index));
  }
  const sandbox = await localBackend.open({ workingDir });
  const snapshot = await sandbox.snapshot();
  const copy = join(await bench.fixtures.folder("sandbox-copy"), "copy");
  const samples = await race(
    {
      restore: { run: () => sandbox.restore(snapshot) },
      copy: {
        async run() {
          await rm(copy, { recursive: true, force: true });
          await cp(workingDir, copy, { recursive: true, preserveTimestamps: true });
        },
      },
    },
    bench.sizes,
  );
  await localBackend.deleteSnapshot?.(snapshot);
  await sandbox.close();
  return {
    section,
    what: `restore of ${formatCount(files)} files`,
    measured: formatMs(medianMs(samples.restore)),
    against: `${formatMs(medianMs(samples.copy))} to remove and copy them with node:fs`,
    ratio: timeRatio(samples.restore, samples.copy),
  };
}

function times(work: () => Promise<void>): Contender {
  return {
    async run() {
      for (let index = 0; index < COMMANDS; index++) await work();
    },
  };
}
