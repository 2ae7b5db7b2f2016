/** One block of an event stream; `data` is null in a block that only sets the event id. */
export interface ParsedEvent {
  /** The last event id in the stream so far, or null. */
  readonly id: string | null;
  readonly type: string;
  readonly data: string | null;
}

const LINE_CHARACTERS_MAX = 64 * 1024 * 1024;

/** Parses Server-Sent Events from text that arrives in chunks of any size. */
export class EventParser {
  #rest = "";
  /** The rest holds no line ending before this index. */
  #searched = 0;
  #started = false;
  #id: string | null = null;
  #type = "";
  #data: string[] = [];
  #hasNewId = false;

  /** The events that this chunk completes. @throws {Error} when a line is longer than the limit. */
  push(chunk: string): ParsedEvent[] {
    const events: ParsedEvent[] = [];
    this.#rest += chunk;
    if (!this.#started && this.#rest !== "") {
      this.#started = true;
      this.#rest = this.#rest.replace(/^\ufeff/, "");
    }
    let start = 0;
    const ending = /\r\n|\n|\r/g;
    ending.lastIndex = this.#searched;
    for (let found = ending.exec(this.#rest); found !== null; found = ending.exec(this.#rest)) {
      // The "\n" of a "\r\n" may be in the next chunk.
      if (found[0] === "\r" && ending.lastIndex === this.#rest.length) break;
      this.#line(this.#rest.slice(start, found.index), events);
      start = ending.lastIndex;
    }
    this.#rest = this.#rest.slice(start);
    this.#searched = Math.max(0, this.#rest.length - 1);
    if (this.#rest.length > LINE_CHARACTERS_MAX) throw new Error("A line of the event stream is too long.");
    return events;
  }

  #line(line: string, events: ParsedEvent[]): void {
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (line === "") this.#dispatch(events);
    else if (field === "data") this.#data.push(value);
    else if (field === "event") this.#type = value;
    else if (field === "id" && !value.includes("\0")) {
      this.#id = value;
      this.#hasNewId = true;
    }
  }

  #dispatch(events: ParsedEvent[]): void {
    if (this.#data.length > 0 || this.#hasNewId) {
      const data = this.#data.length === 0 ? null : this.#data.join("\n");
      events.push({ id: this.#id, type: this.#type === "" ? "message" : this.#type, data });
    }
    [this.#type, this.#data, this.#hasNewId] = ["", [], false];
  }
}
