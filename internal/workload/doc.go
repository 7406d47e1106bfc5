// Package workload makes source histories: seeded random ones that reach every corner of the contract, streams that
// follow the laws of the benchmarks, and the conversion of public data sets.
//
// Owns: a pseudo-random generator whose sequence never changes, the histories of the property tests with every fault of
// S3, the short, long-shallow and long-deep laws, the retail law and the mapping of the retail and Northwind files.
//
// Does not own: how an assertion becomes bytes (wire), the rules that a configuration must keep (manifest), and reading
// or publishing anything: data sets come through an io.Reader, histories go to an io.Writer.
//
// Fails with: *RowError where a row of a data set cannot be converted; errors of the readers and writers given.
package workload
