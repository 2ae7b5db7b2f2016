import { createHash, randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { once } from "node:events";
import { crc32, deflateSync } from "node:zlib";

/** How often a rollout has each picture: in the message for the model, and in the event for the screen. */
const COPIES = 2;

/** A PNG picture of random pixels with about so many bytes. */
export function pictureOf(bytes: number): Buffer {
  const width = Math.max(1, Math.round(Math.sqrt(bytes / 3)));
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(width, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const rows = Array.from({ length: width }, () => Buffer.concat([Buffer.of(0), randomBytes(3 * width)]));
  const data = deflateSync(Buffer.concat(rows), { level: 0 });
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** A written rollout. */
export interface Rollout {
  readonly bytes: number;
  /** What all pictures add up to, each counted once. */
  readonly pictureBytes: number;
  /** The hash of the first picture. */
  readonly firstHash: string;
}

/** Writes a session of Codex with a picture in each turn, as large as is asked for. */
export async function writeRollout(path: string, pictures: number, bytes: number): Promise<Rollout> {
  const file = createWriteStream(path);
  let [written, pictureBytes, firstHash] = [0, 0, ""];
  const write = async (type: string, payload: object): Promise<void> => {
    const timestamp = new Date(Date.UTC(2026, 0, 1) + written).toISOString();
    const line = `${JSON.stringify({ timestamp, type, payload })}\n`;
    written += line.length;
    if (!file.write(line)) await once(file, "drain");
  };
  const id = "01a1e313-a9ec-71f1-8125-351ae5f9e0f4";
  await write("session_meta", { session_id: id, id, timestamp: "2026-01-01T00:00:00.000Z", cwd: "/srv/shop" });
  const each = Math.floor((bytes / pictures / COPIES) * 0.75);
  for (let turn = 0; turn < pictures; turn++) {
    const picture = pictureOf(each);
    pictureBytes += picture.length;
    if (turn === 0) firstHash = createHash("sha256").update(picture).digest("hex");
    const url = `data:image/png;base64,${picture.toString("base64")}`;
    const text = `What does picture ${turn} show?`;
    const content = [
      { type: "input_text", text },
      { type: "input_image", image_url: url },
    ];
    await write("response_item", { type: "message", role: "user", content });
    await write("event_msg", { type: "user_message", message: text, images: [url] });
    const answer = [{ type: "output_text", text: `Picture ${turn} shows noise.` }];
    await write("response_item", { type: "message", role: "assistant", content: answer });
  }
  file.end();
  await once(file, "close");
  return { bytes: written, pictureBytes, firstHash };
}
