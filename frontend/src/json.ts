// Readers for decoded JSON: each returns a value of the type it names or throws `ShapeError` with the field's name.
// Used by `protocol.ts`, by the page's configuration and by the staff pages. Errors never carry what people wrote.

export class ShapeError extends Error {
  constructor(
    readonly field: string,
    expected: string,
  ) {
    super(`${field}: expected ${expected}`);
    this.name = "ShapeError";
  }
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function asObject(value: unknown, field: string): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new ShapeError(field, "an object");
  return value as JsonObject;
}

export function asList(value: unknown, field: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new ShapeError(field, "a list");
  return value;
}

export function text(from: JsonObject, field: string): string {
  const value = from[field];
  if (typeof value !== "string") throw new ShapeError(field, "a text");
  return value;
}

export function textOrNull(from: JsonObject, field: string): string | null {
  return from[field] === null || from[field] === undefined ? null : text(from, field);
}

export function textOr(from: JsonObject, field: string, fallback: string): string {
  return textOrNull(from, field) ?? fallback;
}

export function number(from: JsonObject, field: string): number {
  const value = from[field];
  if (!Number.isFinite(value)) throw new ShapeError(field, "a finite number");
  return value as number;
}

export function numberOrNull(from: JsonObject, field: string): number | null {
  return from[field] === null || from[field] === undefined ? null : number(from, field);
}

export function count(from: JsonObject, field: string): number {
  const value = number(from, field);
  if (!Number.isSafeInteger(value) || value < 0) throw new ShapeError(field, "a whole number of at least 0");
  return value;
}

export function flag(from: JsonObject, field: string): boolean {
  const value = from[field];
  if (typeof value !== "boolean") throw new ShapeError(field, "true or false");
  return value;
}

export function flagOr(from: JsonObject, field: string, fallback: boolean): boolean {
  return from[field] === null || from[field] === undefined ? fallback : flag(from, field);
}

export function oneOf<T extends string>(from: JsonObject, field: string, allowed: readonly T[]): T {
  const value = text(from, field);
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined) throw new ShapeError(field, `one of ${allowed.join(", ")}`);
  return found;
}

export function listOf<T>(from: JsonObject, field: string, read: (item: JsonObject) => T): readonly T[] {
  return asList(from[field], field).map((item) => read(asObject(item, field)));
}
