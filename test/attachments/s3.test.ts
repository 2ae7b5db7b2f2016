import { createHash, randomUUID } from "node:crypto";
import { createServer, request, type Server } from "node:http";
import { afterEach, expect, test, vi } from "vitest";
import type { BlobKey, BlobStore, ListedBlob } from "../../src/session/blob.ts";
import { s3Blobs, type S3BlobsOptions } from "../../src/stores/blobs/index.ts";
import { S3Client } from "../../src/stores/blobs/s3-client.ts";
import { bytesSource } from "../../src/stores/complete/spooled-bytes.ts";
import { sampleBytes } from "../../src/testing/store/blob-cases.ts";
import { collect } from "../../src/testing/store/store-checks.ts";
import { s3Server } from "../s3-server.ts";

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

const bytes = sampleBytes(1, 300_000);
const key: BlobKey = { scope: "s", hash: createHash("sha256").update(bytes).digest("hex") };

async function optionsOf(): Promise<S3BlobsOptions & { readonly prefix: string }> {
  return { ...(await s3Server()).options, prefix: `${randomUUID()}/` };
}

async function readAll(blobs: BlobStore): Promise<Buffer> {
  return Buffer.concat(await collect(blobs.read(key, 0, bytes.length)));
}

async function listed(blobs: BlobStore): Promise<readonly ListedBlob[]> {
  return collect(blobs.list());
}

/** A server before that of S3, which answers a request itself if `answer` returns a status. */
async function inFrontOf(
  endpoint: string,
  answer: (count: number, asked: string) => Promise<null> | number | "cut" | null,
): Promise<string> {
  let count = 0;
  const server = createServer(async (incoming, outgoing) => {
    const status = await answer(count++, `${incoming.method} ${incoming.url}`);
    if (status === "cut") return void incoming.socket.destroy();
    if (status !== null) {
      incoming.resume();
      return void outgoing.writeHead(status).end();
    }
    const { method, headers, url = "" } = incoming;
    const forwarded = request(endpoint + url, { method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(outgoing);
    });
    incoming.pipe(forwarded);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

test("a server of S3 that fails or ends the connection for every second request loses and doubles no blob", async () => {
  const options = await optionsOf();
  const endpoint = await inFrontOf(options.endpoint, (count) =>
    count % 2 === 1 ? null : count % 4 === 0 ? 503 : "cut",
  );
  const blobs = s3Blobs({ ...options, endpoint });
  await blobs.put(key, bytesSource(bytes));
  expect(await readAll(blobs)).toEqual(bytes);
  expect(await blobs.renew(key)).toBe(bytes.length);
  const [one] = await listed(s3Blobs(options));
  expect(await blobs.remove(key, one?.renewedAt ?? 0)).toBe(true);
  expect(await listed(s3Blobs(options))).toEqual([]);
});

test("a removal in S3 that was killed after its mark leaves a blob that can be read, stored again and removed", async () => {
  const options = await optionsOf();
  const blobs = s3Blobs(options);
  await blobs.put(key, bytesSource(bytes));
  const client = new S3Client({ ...options, region: "us-east-1", credentials: options.credentials });
  const keysOf = async (): Promise<readonly string[]> =>
    (await collect(client.list(options.prefix))).flatMap(({ objects }) => objects.map((object) => object.key));
  const [copy = ""] = await keysOf();
  const mark = bytesSource(Buffer.from("x"));
  await client.put(`${copy}.removing.1`, mark, createHash("sha256").update("x").digest("hex"));
  expect(await readAll(blobs)).toEqual(bytes);
  expect(await blobs.renew(key)).toBeNull();
  await blobs.put(key, bytesSource(bytes));
  // The copy that was being removed is gone, and another one is there.
  const keys = await keysOf();
  expect(keys).toHaveLength(1);
  expect(keys).not.toContain(copy);
  expect(await readAll(blobs)).toEqual(bytes);
  const [one] = await listed(blobs);
  expect(await blobs.remove(key, one?.renewedAt ?? 0)).toBe(true);
  expect(await keysOf()).toEqual([]);
});

test("of many renewals, uploads and removals in S3 at the same time, a blob that was renewed or uploaded is there", async () => {
  const options = await optionsOf();
  const [one, other] = [s3Blobs(options), s3Blobs(options)];
  for (let round = 0; round < 4; round++) {
    await one.put(key, bytesSource(bytes));
    const [found] = await listed(one);
    const removing = other.remove(key, found?.renewedAt ?? 0);
    const again = other.remove(key, found?.renewedAt ?? 0);
    const renewed = one.renew(key).then((size) => size !== null);
    const put = round % 3 === 0 ? one.put(key, bytesSource(bytes)).then(() => true) : Promise.resolve(false);
    const [, , isRenewed, isPut] = await Promise.all([removing, again, renewed, put]);
    if (isRenewed || isPut) expect(await readAll(one)).toEqual(bytes);
  }
});

test("a renewal in S3 that comes between the last look of a removal and its deletion says that the blob is gone", async () => {
  const options = await optionsOf();
  const held = async (isHeld: (asked: string) => boolean) => {
    let [arrive, release] = [(): void => {}, (): void => {}];
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const released = new Promise<null>((resolve) => {
      release = () => resolve(null);
    });
    const endpoint = await inFrontOf(options.endpoint, (_, asked) => {
      if (!isHeld(asked)) return null;
      arrive();
      return released;
    });
    return { blobs: s3Blobs({ ...options, endpoint }), arrived, release };
  };
  const renewing = await held((asked) => asked.startsWith("PUT") && asked.endsWith(".renewed"));
  const removing = await held((asked) => asked.startsWith("DELETE"));
  const blobs = s3Blobs(options);
  await blobs.put(key, bytesSource(bytes));
  const [found] = await listed(blobs);
  const renewed = renewing.blobs.renew(key);
  await renewing.arrived;
  const removed = removing.blobs.remove(key, found?.renewedAt ?? 0);
  await removing.arrived;
  renewing.release();
  expect(await renewed).toBeNull();
  // What is stored now is another copy, which the removal does not know.
  await blobs.put(key, bytesSource(bytes));
  removing.release();
  await removed;
  expect(await readAll(blobs)).toEqual(bytes);
});

test("a refused request to S3 says what the server said, without the secret", async () => {
  const options = await optionsOf();
  const blobs = s3Blobs({ ...options, credentials: async () => ({ accessKeyId: "S3RVER", secretAccessKey: "wrong" }) });
  await expect(blobs.size(key)).rejects.toMatchObject({
    code: "STORE_FAILED",
    message: expect.stringMatching(
      /^The request GET of the list of objects to bucket "blobs" of S3 was refused with SignatureDoesNotMatch: /,
    ),
  });
  await expect(blobs.size(key)).rejects.not.toMatchObject({ message: expect.stringContaining("wrong") });
});

test("wrong options of blobs in S3 are refused", async () => {
  const options = await optionsOf();
  for (const wrong of [
    { endpoint: "s3.example" },
    { endpoint: "ftp://s3.example" },
    { bucket: "" },
    { region: "" },
    { prefix: "../a" },
    { credentials: { accessKeyId: "a" } },
    { secret: "x" },
  ])
    expect(() => s3Blobs({ ...options, ...wrong } as never)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
});

test("blobs in S3 without the package aws4fetch say which one to install", async () => {
  vi.resetModules();
  vi.doMock("aws4fetch", () => {
    throw new Error("Cannot find package 'aws4fetch'");
  });
  try {
    const { s3Blobs: open } = await import("../../src/stores/blobs/s3-blobs.ts");
    await expect(open(await optionsOf()).size(key)).rejects.toMatchObject({
      code: "DRIVER_MISSING",
      message: "Blobs in S3 need the package aws4fetch: npm install aws4fetch.",
    });
  } finally {
    vi.doUnmock("aws4fetch");
    vi.resetModules();
  }
});
