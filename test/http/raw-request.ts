import { connect } from "node:net";

/** Sends raw bytes, for requests that no client would send; returns all bytes until the connection is closed. */
export async function sendRaw(url: string, ...pieces: readonly (string | Uint8Array)[]): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
    // A server may close the connection while the client still sends.
    socket.on("error", () => {});
  });
  for (const piece of pieces) socket.write(piece);
  await closed;
  return Buffer.concat(chunks).toString("utf8");
}

/** The status and the problem document of a raw answer. */
export function problemIn(answer: string): { readonly status: number; readonly code: string } {
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]);
  if (!head.toLowerCase().includes("content-type: application/problem+json")) throw new Error(`No problem: ${answer}`);
  const json = /^transfer-encoding: chunked$/im.test(head) ? body.replace(/^[0-9a-f]+\r\n|\r\n0\r\n$/gi, "") : body;
  return {
    status,
    code: (JSON.parse(json.slice(json.indexOf("{"), json.lastIndexOf("}") + 1)) as { code: string }).code,
  };
}
