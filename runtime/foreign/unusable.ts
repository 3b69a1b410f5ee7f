/** Thrown by whoever reads what others wrote, for what keeps it from being used; `where` is filled in by whoever knows it. */
export class Unusable extends Error {
  readonly remedy: string | undefined;
  readonly where: string | undefined;
  constructor(what: string, o: { readonly where?: string | undefined; readonly remedy?: string | undefined } = {}) {
    super(what);
    this.name = 'Unusable';
    this.where = o.where;
    this.remedy = o.remedy;
  }
}
