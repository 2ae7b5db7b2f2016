import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { type Attack, attacks } from "../attack.ts";
import { madeNone, sent } from "../refusals.ts";

type Row = Omit<Attack, "kind">;
const JSON_TYPE = "Content-Type: application/json";
const NEW = ["POST", "/api/sessions"] as const;

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

export const largeBodies: readonly Attack[] = attacks(
  "bodies that are too large, too slow or cut off",
  sent("announces a gigabyte", ({ head }) => [head(...NEW, JSON_TYPE, "Content-Length: 1073741824"), "{"], 413),
  sent(
    "announces more than can be counted",
    ({ head }) => [head(...NEW, JSON_TYPE, "Content-Length: 99999999999999999999999"), "{"],
    400,
  ),
  sent("announces less than nothing", ({ head }) => [head(...NEW, JSON_TYPE, "Content-Length: -1"), "{}"]),
  sent("announces two lengths", ({ head }) => [
    head(...NEW, JSON_TYPE, "Content-Length: 2", "Content-Length: 7"),
    "{}",
  ]),
  sent("announces a length and chunks", ({ head }) => [
    head(...NEW, JSON_TYPE, "Content-Length: 2", "Transfer-Encoding: chunked"),
    "0\r\n\r\n",
  ]),
  sent("says more than it announced", ({ head }) => [
    head(...NEW, JSON_TYPE, "Content-Length: 4"),
    '{"name":"smuggled"}',
  ]),
  sent(
    "says less than it announced, and waits",
    ({ head }) => [head(...NEW, JSON_TYPE, "Content-Length: 100"), "{}"],
    408,
  ),
  sent(
    "sends chunks without an end",
    ({ head }) => [head(...NEW, JSON_TYPE, "Transfer-Encoding: chunked"), chunk('{"name":')],
    408,
  ),
  sent("sends a chunk whose size is no number", ({ head }) => [
    head(...NEW, JSON_TYPE, "Transfer-Encoding: chunked"),
    "xyz\r\n{}\r\n0\r\n\r\n",
  ]),
  sent("sends a chunk that is larger than can be counted", ({ head }) => [
    head(...NEW, JSON_TYPE, "Transfer-Encoding: chunked"),
    "ffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
  ]),
  sent(
    "sends 32 MB in chunks without a word on how much there is",
    ({ head }) => [
      head(...NEW, JSON_TYPE, "Transfer-Encoding: chunked"),
      ...Array.from({ length: 32 }, () => chunk(" ".repeat(1024 * 1024))),
      "0\r\n\r\n",
    ],
    413,
  ),
  sent(
    "sends 20 MB as an import",
    ({ head }) => {
      const lines = Buffer.alloc(20 * 1024 * 1024, "x");
      return [head("POST", "/api/import", "Content-Type: application/jsonl", `Content-Length: ${lines.length}`), lines];
    },
    413,
  ),
  {
    name: "hangs up in the middle of a body, a hundred times",
    who: "user",
    async send(attacker) {
      await Promise.all(
        Array.from({ length: 100 }, async () => {
          const stop = AbortSignal.timeout(30);
          const body = new ReadableStream({ pull: () => new Promise(() => {}) });
          const init = {
            method: "POST",
            body,
            duplex: "half",
            signal: stop,
            headers: { "content-type": "application/json", authorization: `Bearer ${attacker.token}` },
          };
          await fetch(`${attacker.url}/api/sessions`, init as RequestInit).catch(() => {});
        }),
      );
      return attacker.call("GET", "/api/me");
    },
    expect: { status: 200, never: madeNone },
  },
);

/** A body of 200 MB that is 200 KB when it is packed. */
const bomb = () =>
  gzipSync(Buffer.concat([Buffer.from('{"name":"'), Buffer.alloc(200 * 1024 * 1024, "x"), Buffer.from('"}')]), {
    level: 1,
  });
const packed = (name: string, encoding: string, bytes: () => Uint8Array): Row =>
  sent(
    `sends a body that is ${name}`,
    ({ head }) => {
      const body = bytes();
      return [head(...NEW, JSON_TYPE, `Content-Encoding: ${encoding}`, `Content-Length: ${body.length}`), body];
    },
    400,
  );

export const packedBodies: readonly Attack[] = attacks(
  "compressed bodies",
  packed("packed with gzip", "gzip", () => gzipSync('{"name":"x"}')),
  packed("packed with deflate", "deflate", () => deflateSync('{"name":"x"}')),
  packed("packed with brotli", "br", () => brotliCompressSync('{"name":"x"}')),
  packed("200 MB once it is unpacked", "gzip", bomb),
  sent(
    "sends a transfer that is packed",
    ({ head }) => {
      const body = gzipSync('{"name":"x"}');
      const pieces = [`${body.length.toString(16)}\r\n`, body, "\r\n0\r\n\r\n"];
      return [head(...NEW, JSON_TYPE, "Transfer-Encoding: gzip, chunked"), ...pieces];
    },
    400,
  ),
);

export const wrongContentTypes: readonly Attack[] = attacks(
  "content types that a form can send",
  ...[
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "",
    "text/json",
    "application/xml",
    "application/jsonx",
    "text/plain; application/json",
  ].map(
    (type): Row => ({
      name: `sends JSON as ${type === "" ? "nothing" : type}`,
      who: "user",
      send: (attacker) => attacker.call("POST", "/api/sessions", "{}", { headers: { "content-type": type } }),
      expect: { status: 415, code: "UNSUPPORTED_MEDIA_TYPE", never: madeNone },
    }),
  ),
  {
    name: "imports a log as a form",
    who: "user",
    send: (attacker) => attacker.call("POST", "/api/import", "{}", { headers: { "content-type": "text/plain" } }),
    expect: { status: 415, code: "UNSUPPORTED_MEDIA_TYPE", never: madeNone },
  },
);
