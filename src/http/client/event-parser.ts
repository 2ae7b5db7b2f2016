/** One block of an event stream; `data` is null where the block only says how far the stream has come. */
export interface ParsedEvent {
  /** The last id that the stream has named, or null. */
  readonly id: string | null;
  readonly type: string;
  readonly data: string | null;
}

const LINE_CHARACTERS_MAX = 64 * 1024 * 1024;

/** Reads the text of an event stream, as Server-Sent Events are defined, in whatever pieces it comes. */
export class EventParser {
  #rest = "";
  /** Up to where the rest is known to hold no end of a line. */
  #searched = 0;
  #begun = false;
  #id: string | null = null;
  #type = "";
  #data: string[] = [];
  #said = false;

  /** The events that are complete with this piece. @throws {Error} when a line does not end. */
  push(piece: string): ParsedEvent[] {
    const events: ParsedEvent[] = [];
    this.#rest += piece;
    if (!this.#begun && this.#rest !== "") {
      this.#begun = true;
      this.#rest = this.#rest.replace(/^\ufeff/, "");
    }
    let start = 0;
    const ending = /\r\n|\n|\r/g;
    ending.lastIndex = this.#searched;
    for (let found = ending.exec(this.#rest); found !== null; found = ending.exec(this.#rest)) {
      // The second half of an ending may still be on its way.
      if (found[0] === "\r" && ending.lastIndex === this.#rest.length) break;
      this.#line(this.#rest.slice(start, found.index), events);
      start = ending.lastIndex;
    }
    this.#rest = this.#rest.slice(start);
    this.#searched = Math.max(0, this.#rest.length - 1);
    if (this.#rest.length > LINE_CHARACTERS_MAX) throw new Error("A line of the event stream does not end.");
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
      this.#said = true;
    }
  }

  #dispatch(events: ParsedEvent[]): void {
    if (this.#data.length > 0 || this.#said) {
      const data = this.#data.length === 0 ? null : this.#data.join("\n");
      events.push({ id: this.#id, type: this.#type === "" ? "message" : this.#type, data });
    }
    [this.#type, this.#data, this.#said] = ["", [], false];
  }
}
