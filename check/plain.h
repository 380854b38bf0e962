// The operators in plain fp32: what a careful scalar program gives, and so the yardstick for drift. Sums run
// over 32 lanes. The virtual functions are the places where an arithmetic can go wrong; tests override them.
#pragma once

#include "check/run_case.h"

namespace fmhc::check {

class PlainFp32 {
 public:
  explicit PlainFp32(const Case& call);
  virtual ~PlainFp32() = default;
  PlainFp32(const PlainFp32&) = delete;
  PlainFp32& operator=(const PlainFp32&) = delete;

  // expand, pre, post, head and contract.
  Tensors run();

  // Longest chain of additions of one sum.
  static int64_t chain(const Case& call);

 protected:
  virtual double stored(float value) const;                       // what storage keeps
  virtual float weight(float fn) const { return fn; }             // an element of fn
  virtual float partial(float lane) const { return lane; }        // a lane's sum
  virtual float coefficient(float value) const { return value; }  // before it multiplies a row
  virtual float multiply_add(float a, float b, float sum) const;
  virtual float add_output(float post, float z, float sum) const;  // sum + post * z
  virtual size_t comb_entry(size_t source, size_t destination) const;
  virtual bool unrounded_square() const;  // the norm's square sum is of the unrounded row
  virtual float normed(float row) const;  // the element that the norm multiplies

  const Case& call_;
  const size_t streams_, hidden_;

 private:
  template <class Term>
  float lane_sum(size_t count, const Term& term) const;
  float residual(size_t token, size_t stream, size_t column) const;
  void expand();
  void coefficients(size_t token);
  void sinkhorn(const float* logits);
  void collapse(const Values& mix);
  void normalise(std::vector<float>* row) const;
  void post();

  Tensors out_;
};

RunResult run_plain(const Case& call);

}  // namespace fmhc::check
