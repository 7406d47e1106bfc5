package oracle

// Mutations is how many records the differential test judges.
const Mutations = 200_000 / thin
