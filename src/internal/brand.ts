/** Marks objects so that they can be told from all others, whoever made those look alike. */
export interface Brand {
  /** Before the object is frozen, as a later language may refuse to mark one that is. */
  add(object: object): void;
  has(object: object): boolean;
}

/** What a constructor returns is what a class that extends it adds its private fields to. */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the object that is given is the one to be marked.
    return object;
  }
}

/** A brand of its own. It does what a `WeakSet` does, without the ten times longer that adding to one takes. */
export function createBrand(): Brand {
  class Branded extends Given {
    readonly #branded: boolean = true;

    static has(object: object): boolean {
      return #branded in object;
    }
  }
  return { add: (object) => void new Branded(object), has: Branded.has };
}
