import { encode, type Call } from "./call.js";
import { isPetBatch } from "./checks.js";
import type { Origin } from "./errors.js";
import { checkRules, type CallOptions, type Meta } from "./options.js";
import { Scope } from "./scope.js";
import type { Transport } from "./transport.js";
import type { NewPet, Pet, PetBatch, PetStatus } from "./types.js";

/** How many pets can be added at once. */
const maxBatch = 100;

const statuses: PetStatus[] = ["available", "pending", "sold"];

/** Options of `importPets`. The timeout is for the whole import. */
export interface ImportOptions extends Pick<CallOptions, "signal" | "timeout"> {
  /** Makes this another import than those of the same pets with another salt. */
  salt?: string;
  /** Called after every batch with what has been added so far. */
  onBatch?: (progress: PetImport) => void;
}

/** The progress or the result of `importPets`. */
export interface PetImport {
  /** Those that were added, now or by an earlier call, as they were when they were added, in the order of the list. */
  pets: Pet[];
  /** How many this call added. */
  added: number;
  /** How many an earlier call with the same pets had added. */
  existing: number;
}

/** Throws if the service would refuse a pet. */
function checkPet({ name, categoryId, status }: NewPet, at: string, origin: Origin): void {
  const rules: [unknown, string][] = [
    [typeof name === "string", "name must be a string"],
    [/\P{White_Space}/u.test(name), "name must not be white space only"],
    [[...String(name)].length <= 1024, "name must have at most 1024 characters"],
    [!/\0/.test(name), "name must not contain the character U+0000"],
    [!/\p{Surrogate}/u.test(name), "name must be valid Unicode"],
    [Number.isSafeInteger(categoryId), "categoryId must be an integer below 2⁵³"],
    [status === undefined || statuses.includes(status), `status must be one of ${statuses.join(", ")}`],
  ];
  checkRules(rules.map(([kept, text]) => [kept, `${at}.${text}`]), origin);
}

/** The call that adds pets at once. */
export function batchCall(pets: NewPet[], operation = "createPetBatch"): Call<PetBatch> {
  return { operation, method: "POST", path: "/pets/batch", body: { pets }, repeat: "replayed", check: isPetBatch(pets.length) };
}

/** Adds pets in batches whose keys are the same whenever the same pets are added. */
export async function importPets(transport: Transport, given: NewPet[], options: ImportOptions): Promise<PetImport> {
  const { salt = "", onBatch, ...callOptions } = options;
  const origin = { operation: "importPets" };
  checkRules([[crypto.subtle, "importPets doesn't work on pages without https, where browsers have no crypto.subtle"]], origin);
  // The same pet always has the same text.
  const pets = given.map(({ name, categoryId, status }) => (status ? { name, categoryId, status } : { name, categoryId }));
  pets.forEach((pet, i) => checkPet(pet, `pets[${i}]`, origin));
  const input = new TextEncoder().encode(encode([salt, pets], origin));
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", input));
  const hex = Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const done: PetImport = { pets: [], added: 0, existing: 0 };
  let fresh = false; // no earlier call got this far
  let replayed = false;
  const readMeta = (meta: Meta) => void ({ replayed } = meta);
  const scope = new Scope(callOptions);
  try {
    for (let number = 1; done.pets.length < pets.length; number++) {
      const batch = pets.slice(done.pets.length, done.pets.length + maxBatch);
      const idempotencyKey = `import-${hex}-${number}-${batch.length}`;
      const { value, resent } = await transport.do(batchCall(batch, "importPets"), { ...callOptions, idempotencyKey, readMeta }, scope);
      fresh ||= !replayed;
      if (fresh || resent) {
        done.added += batch.length;
      } else {
        // An earlier call added this batch, and so those before it.
        done.existing += done.added + batch.length;
        done.added = 0;
      }
      done.pets.push(...value.pets);
      onBatch?.(done);
    }
  } finally {
    scope.close();
  }
  return done;
}
