/**
 * What stands on pages, one by one and each as `read` gives it. No generator: its items would each pass through three more
 * promises, and the first context of 2,000 messages would take a tenth more CPU time of the main thread.
 */
export class PagedItems<Stored, Item> implements AsyncIterableIterator<Item> {
  readonly #pages: AsyncGenerator<readonly Stored[]>;
  readonly #read: (stored: Stored) => Item;
  #page: readonly Stored[] = [];
  #position = 0;
  /** Whether there is another page; null unless someone waits for one. */
  #turning: Promise<boolean> | null = null;

  constructor(pages: AsyncGenerator<readonly Stored[]>, read: (stored: Stored) => Item) {
    this.#pages = pages;
    this.#read = read;
  }

  next(): Promise<IteratorResult<Item>> {
    if (this.#turning === null && this.#position < this.#page.length) {
      const stored = this.#page[this.#position++] as Stored;
      return Promise.resolve({ done: false, value: this.#read(stored) });
    }
    this.#turning ??= this.#turn();
    return this.#turning.then((more) => (more ? this.next() : { done: true, value: undefined }));
  }

  async return(): Promise<IteratorResult<Item>> {
    this.#page = [];
    await this.#pages.return(undefined);
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #turn(): Promise<boolean> {
    try {
      const { done, value } = await this.#pages.next();
      this.#page = done === true ? [] : value;
      this.#position = 0;
      return done !== true;
    } finally {
      this.#turning = null;
    }
  }
}
