import { expect, onTestFinished } from "vitest";
import { type PostgresServer, startPostgres } from "../../scripts/postgres.mjs";
import { createSmallDisk, type SmallDisk } from "../../scripts/small-disk.mjs";
import { createHeader } from "../../src/session/log/header.ts";
import { appendAgain, appendUntilRefused, checkHolds, diskTest, largeDrafts } from "./disk-support.ts";
import { openPool, openStore } from "./postgres-support.ts";
import { refusalOf } from "./store-support.ts";

const DISK_BYTES = 48_000_000;

diskTest(
  "refuses appends on a full disk, keeps acknowledged entries, and appends again once there is room",
  async () => {
    const { server, disk } = await startOnDisk({ walApart: true });
    const store = await openStore({ url: server.url });
    await store.create(createHeader({ id: "a" }));
    disk.fill(1_000_000);
    const { acknowledged, refused, refusal } = await appendUntilRefused(store);
    expect(refusal).toMatchObject({
      code: "STORE_FAILED",
      message: `The PostgreSQL database 127.0.0.1:${server.port}/postgres has no room left on its disk; make room and try again.`,
      cause: { code: "53100" },
    });
    expect(acknowledged.length).toBeGreaterThan(10);
    expect(await refusalOf(store.append("a", refused))).toMatchObject({ code: "STORE_FAILED" });
    await checkHolds(store, acknowledged);
    disk.makeRoom();
    await store.append("a", refused);
    await checkHolds(store, [...acknowledged, ...refused.map(({ id }) => id as string)]);
  },
);

diskTest(
  "loses nothing when the server crashes because its write-ahead log has no room, and appends again after its recovery",
  async () => {
    const { server, disk } = await startOnDisk({ walApart: false });
    const store = await openStore({ url: server.url });
    await store.create(createHeader({ id: "a" }));
    const [before, during] = [largeDrafts("before"), largeDrafts("during")];
    await store.append("a", before);
    disk.fill(0);
    // This grows only the write-ahead log. Without room for it, the server crashes.
    const pool = openPool(server.url);
    await expect(pool.query("SELECT pg_logical_emit_message(true, '', repeat('x', 40000000))")).rejects.toThrow();
    expect(await refusalOf(store.append("a", during))).toMatchObject({
      code: "STORE_FAILED",
      message: expect.stringMatching(
        /^The PostgreSQL database [\w.:/]+ (?:lost the connection|is starting up|cannot be reached|has no room left)[^.]+\.$/,
      ),
    });
    disk.makeRoom();
    await appendAgain(store, during);
    await checkHolds(
      store,
      [...before, ...during].map(({ id }) => id as string),
    );
  },
);

async function startOnDisk(options: { readonly walApart: boolean }): Promise<{
  readonly server: PostgresServer;
  readonly disk: SmallDisk;
}> {
  const disk = createSmallDisk(DISK_BYTES);
  const server = await startPostgres({ ...options, disk });
  onTestFinished(() => server.stop());
  return { server, disk };
}
